"""``python -m bench``: the quick ladder as a newcomer meets it, in a fresh folder, with the figures it has to reach.

Run it alone on an idle machine: with another busy process, two OpenMP threads slow down sharply.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def timed(environment: dict[str, str], *words: str) -> tuple[float, str]:
    """Wall seconds and standard output of one ``rungs`` command."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "flows", *words]
    found = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - started, found.stdout


def newest_metrics(home: Path, stage: str) -> dict[str, Any]:
    """Final metrics of the longest run of a stage."""
    manifests = [
        json.loads(path.read_text(encoding="utf-8")) for path in home.glob(f"store/artifacts/{stage}/*/manifest.json")
    ]
    chosen = max(manifests, key=lambda manifest: manifest["seconds"])
    return {**chosen["metrics"], "stage_seconds": chosen["seconds"]}


def measure(home: Path) -> list[tuple[str, float, str]]:
    """Figure, value and what it should be."""
    environment = {**os.environ, "RUNGS_HOME": str(home)}
    helping = min(timed(environment, "--help")[0] for _ in range(3))
    first, output = timed(environment, "run", "quick")
    print(output)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024**2
    second, output = timed(environment, "run", "quick")
    again = sum(line.strip().startswith("ran ") for line in output.splitlines())
    board = json.loads(timed(environment, "leaderboard", "--json")[1])["rows"]
    rows = {(row["task"], row["rung"]): row for row in board}
    bert = newest_metrics(home, "pretrain_bert")
    return [
        ("quick ladder, seconds", first, "<= 720"),
        ("largest process, GiB", peak, "<= 4"),
        ("second run, seconds", second, "<= 20"),
        ("stages run again in the second run", again, "0"),
        ("rungs --help, seconds (best of 3)", helping, "<= 1.5"),
        ("pretraining, seconds", bert["stage_seconds"], ""),
        ("pretraining, share of wall time in steps", bert["train_step_share"], ">= 0.9"),
        ("pretraining, tokens per second", bert["tokens_per_second"], ""),
        ("held-out MLM, nats below the unigram plateau", bert["nats_below_unigram"], ">= 1"),
        *(_gain(rows, task) for task in dict.fromkeys(row["task"] for row in board)),
    ]


def _gain(rows: dict[tuple[str, str], dict[str, Any]], task: str) -> tuple[str, float, str]:
    bert, control = rows[task, "bert"], rows[task, "bert_random"]
    return f"bert minus bert_random, {bert['metric']}", bert["mean"] - control["mean"], "> 0"


def main() -> None:
    """Measure and print; ``--json FILE`` also writes the rows."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    parser.add_argument("--home", type=Path, help="new folder to measure in and keep (default: a temporary one)")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} before the start")
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(options.home or Path(folder))
    for name, value, target in rows:
        print(f"{name:<48}{value:>12.3f}  {target}")
    if options.json:
        options.json.write_text(
            json.dumps({"rows": [dict(zip(("work", "value", "reach"), row, strict=True)) for row in rows]})
        )


if __name__ == "__main__":
    main()
