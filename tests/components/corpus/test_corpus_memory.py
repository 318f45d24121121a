"""Memory of ``prepare_corpus``: the peak of a fresh process at one and at ten times the corpus."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
MEASURE = """
import resource, sys
from pathlib import Path
from components.corpus.config import CorpusConfig, CorpusSource
from components.corpus.stage import prepare_corpus
source = CorpusSource(kind="files", path=sys.argv[1], documents="line")
metrics = prepare_corpus(CorpusConfig(sources=(source,)), out_dir=Path(sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, int(metrics["num_documents"]), int(metrics["num_chars"]))
"""


def measure(path: Path) -> tuple[int, int, int]:
    out_dir = path.with_suffix(".out")
    out_dir.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), str(out_dir)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    memory, num_documents, num_chars = map(int, run.stdout.split())
    return memory, num_documents, num_chars


def write_random_documents(path: Path, number: int) -> None:
    generator = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as stream:
        for _ in range(number):
            stream.write("".join(map(chr, generator.integers(0x4E00, 0x6E00, 150))) + "。\n")


def test_text_08_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    write_random_documents(tmp_path / "one.txt", 1000)
    write_random_documents(tmp_path / "ten.txt", 10_000)
    one, ten = measure(tmp_path / "one.txt"), measure(tmp_path / "ten.txt")
    assert (one[1], ten[1]) == (1000, 10_000)
    assert ten[0] <= 1.2 * one[0]


def test_text_08_giant_line_is_read_in_bounded_memory(tmp_path: Path) -> None:
    for name, repeats in (("one.txt", 100_000), ("ten.txt", 5_000_000)):
        with (tmp_path / name).open("w", encoding="utf-8") as stream:
            for _ in range(repeats // 10_000):
                stream.write("天地玄黄" * 10_000)
    one, ten = measure(tmp_path / "one.txt"), measure(tmp_path / "ten.txt")
    assert ten[0] <= 1.2 * one[0]
    assert ten[1] == 1  # pieces of one repeated line are exact duplicates of each other
