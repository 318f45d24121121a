"""A Prefect server for one run, for machines where none is running.

Prefect would start one by itself, but that one outlives a run that is killed. Ours reads a pipe whose other end the
run holds: the kernel closes it whenever and however the run ends, and the server exits.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack

from components.errors import RungsError
from flows.environment import Home

START_TIMEOUT_SECONDS = 180


class TemporaryServer:
    """A Prefect API on loopback that boots while the caller imports and checks, and ends with the caller."""

    def __init__(self, home: Home, stack: ExitStack) -> None:
        """Launch the server; ``stack`` stops it."""
        self._starting = stack.enter_context(ExitStack())
        # Two servers creating one database at once break it: the lock is held until this one answers.
        self._starting.enter_context(home.store.lock("prefect-server-start"))
        self.log_path = home.root / "prefect-server.log"
        log = stack.enter_context(self.log_path.open("ab"))
        self.port = _free_port()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flows.temporary_server", str(self.port)],
            stdin=subprocess.PIPE,
            # Ctrl-C reaches the whole process group; the server must outlive the flow to hear of its end.
            start_new_session=True,
            stdout=log,
            stderr=log,
            env={**os.environ, "PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1"},
        )
        stack.callback(self._stop)

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        """Wait until the server answers, then let Prefect use it for a block.

        Raises:
            RungsError: It ended or did not answer in time.
        """
        from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings

        self._wait()
        self._starting.close()
        # Its database outlives it, but nobody reads log lines there: the terminal and MLflow have them.
        updates = {PREFECT_API_URL: f"http://127.0.0.1:{self.port}/api", PREFECT_LOGGING_TO_API_ENABLED: False}
        with temporary_settings(updates=updates):
            yield

    def _wait(self) -> None:
        # The flow needs it in a moment, and the server boots on another core meanwhile.
        import mlflow  # noqa: F401

        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            if _answers(self.port):
                return
            time.sleep(0.05)
        raise RungsError(f"the temporary Prefect server did not start; its log: {self.log_path}")

    def _stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def prefect_api(home: Home) -> Iterator[AbstractContextManager[None]]:
    """A block with a Prefect API: the configured one, else a temporary server that is booting meanwhile.

    Yields:
        A context manager to enter before the first call to Prefect.
    """
    if os.environ.get("PREFECT_API_URL"):
        yield contextlib.nullcontext()
        return
    with ExitStack() as stack:
        yield TemporaryServer(home, stack).ready()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _exit_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve Prefect's API on the port given as argument until standard input closes."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    import uvicorn
    from prefect.server.api.server import create_app

    uvicorn.run(create_app, factory=True, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", lifespan="on")


if __name__ == "__main__":
    main()
