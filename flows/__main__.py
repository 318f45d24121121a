"""``python -m flows`` is ``rungs``."""

from flows.cli import main

main()
