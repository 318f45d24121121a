from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from components.artifacts import publish
from components.datasets.config import AuditConfig
from components.datasets.stage import audit_leaks
from components.evaluation.comparison_config import ComparisonConfig, Control, Entry
from components.evaluation.comparison_stage import compare
from components.evaluation.config import EvaluationConfig
from components.evaluation.stage import evaluate
from components.examples import Example, write_examples, write_labels, write_task
from components.formats import write_json, write_jsonl
from components.report.sources import ProbeSource, ReportSources, TaskSources

SECONDS = {"tfidf": 5.0, "lstm": 60.0, "bert": 600.0}
COSTS = {"num_parameters": 4_100_000.0, "model_bytes": 2_300_000.0, "test_items_per_second": 1234.5}
RUN = {
    "run_id": "0123abcd", "deployment": "planted", "created": "2026-01-02T03:04:05+00:00", "code": "c0de",
    "versions": {"numpy": "2.4.6"}, "machine": {"cores": 2, "processor": "x86_64", "system": "Linux-6.1"},
    "parameters": {"seeds": [0, 1, 2], "finetuning": {"num_epochs": None}}, "seconds": 104.0,
}  # fmt: skip
Accuracies = dict[str, float]
Build = Callable[..., ReportSources]


def _publish(root: Path, stage: str, number: int, write: Callable[[Path], dict[str, float]]) -> Path:
    scratch = root / "scratch"
    scratch.mkdir(parents=True)
    metrics = write(scratch)
    key = f"{number:064x}"[::-1]
    return publish(scratch, root / stage / key[:32], stage=stage, key=key, metrics=metrics, details={}).path


def _dataset(root: Path, size: int, leaked: int, labels: str) -> Path:
    """Test items with distinct texts; the last ``leaked`` ones are in train too."""
    texts = [f"{np.base_repr(7919 * (n + 11) ** 3, 36)} {n}" for n in range(size)]
    test = [Example(f"t:{n}", text, labels[n % 2]) for n, text in enumerate(texts)]
    train = [Example(f"r:{n}", f"{np.base_repr(104729 * (n + 5) ** 3, 36)} r{n}", labels[n % 2]) for n in range(300)]
    train += [Example(f"c:{item.id}", item.text, item.label) for item in test[size - leaked :]]
    folder = root / "raw"
    folder.mkdir(parents=True)
    write_task(folder, "classification")
    write_labels(folder, labels)
    write_json(folder / "normalization.json", {})
    for split, rows in (
        ("train", train),
        ("validation", [Example("v:0", "validation text", labels[0])]),
        ("test", test),
    ):
        write_examples(folder, split, rows)
    # What is a copy stays in train, so that 300 labels are fewer than all.
    config = AuditConfig(near_duplicates=False, duplicates_of_test="keep")
    return _publish(root, "audit_leaks", 0, lambda out: audit_leaks(config, dataset=folder, out_dir=out))


def _corpus(root: Path) -> Path:
    def write(out: Path) -> dict[str, float]:
        dropped = {"held_out_exact": 7, "held_out_near": 3}
        found = {"num_held_out_texts": 501, "held_out_ids_found": ["a", "b"], "num_documents_dropped": dropped}
        write_json(out / "audit.json", {**found, "num_documents_trimmed": 4, "num_sentences_dropped": 9})
        return {
            "num_documents_read": 1000.0,
            "num_documents": 990.0,
            "num_dropped_short": 10.0,
            "num_dropped_empty": 0.0,
        }

    return _publish(root, "prepare_corpus", 1, write)


def _right(accuracy: float, size: int, leaked: int, seed: int, by_heart: bool) -> np.ndarray:
    shared, own = np.random.default_rng(99).random(size), np.random.default_rng(seed + 1).random(size)
    right = np.where(own < 0.9, shared < accuracy, np.roll(own, 1) < accuracy)
    if by_heart:
        right[size - leaked :] = True
    return right


def _runs(
    root: Path, dataset: Path, accuracies: Accuracies, options: dict[str, Any]
) -> tuple[list[Entry], list[Path], dict[str, list[Path]]]:
    size, leaked, labels = options["size"], options["leaked"], options["labels"]
    entries, predictions, evaluations = [], [], {}
    budgets = (20, 100, None) if options["curve"] else (None,)
    for number, (rung, accuracy) in enumerate(accuracies.items()):
        for at, budget in enumerate(budgets):
            for seed in range(options["num_seeds"]):
                drop = 0.08 * number * (len(budgets) - 1 - at) if rung == "bert" else 0.0
                right = _right(accuracy - drop, size, leaked, 10 * number + seed, rung == options["by_heart"])

                def write(out: Path, right: np.ndarray = right, rung: str = rung) -> dict[str, float]:
                    rows = (
                        {"id": f"t:{n}", "label": labels[n % 2 if hit else 1 - n % 2]} for n, hit in enumerate(right)
                    )
                    write_jsonl(out / "predictions.jsonl", rows)
                    return {
                        **COSTS,
                        "train_seconds": SECONDS.get(rung, 9.0),
                        "num_truncated": float(len(rung)),
                        "num_test_items": float(size),
                    }

                where = number * 100 + at * 10 + seed + 10
                predictions.append(_publish(root, "finetune", where, write))
                entries.append(Entry(
                    rung=rung, seed=seed, num_train_examples=budget, train_seconds=SECONDS.get(rung, 9.0),
                    items_per_second=COSTS["test_items_per_second"], num_parameters=4_100_000, model_bytes=2_300_000,
                ))  # fmt: skip
                if budget is None:
                    run = predictions[-1]
                    scored = _publish(
                        root,
                        "evaluate",
                        where,
                        lambda out, run=run: evaluate(
                            EvaluationConfig(num_resamples=100), predictions=run, dataset=dataset, out_dir=out
                        ),
                    )
                    evaluations.setdefault(rung, []).append(scored)
    return entries, predictions, evaluations


def build_sources(root: Path, accuracies: Accuracies, **changes: Any) -> ReportSources:
    """Artifacts of one task as the stages write them, with planted accuracies."""
    defaults = {
        "size": 500,
        "num_seeds": 3,
        "leaked": 0,
        "by_heart": "",
        "curve": False,
        "labels": "np",
        "controls": (),
        "probes": (),
    }
    options = {**defaults, **changes}
    dataset = _dataset(root, options["size"], options["leaked"], options["labels"])
    entries, predictions, evaluations = _runs(root, dataset, accuracies, options)
    config = ComparisonConfig(entries=tuple(entries), controls=options["controls"], num_resamples=300)
    comparison = _publish(
        root, "compare", 2, lambda out: compare(config, predictions=tuple(predictions), dataset=dataset, out_dir=out)
    )
    folders = {rung: tuple(paths) for rung, paths in evaluations.items()}
    tasks = {
        "classification": TaskSources(
            comparison,
            dataset,
            folders,
            finetuned={
                rung: tuple(path.parents[1] / "finetune" / path.name for path in paths)
                for rung, paths in folders.items()
            },
        )
    }
    return ReportSources(RUN, tasks, _corpus(root), tuple(options["probes"]))


def write_probe(folder: Path, rung: str, **changes: Any) -> ProbeSource:
    folder.mkdir(parents=True)
    Figure(figsize=(1, 1)).savefig(folder / "senses.png")
    content = {
        "probe": "senses", "encoder": "bert", "language": "en", "meaningful": True, "reason": "",
        "headline": {"sense_accuracy": 0.8125}, "figures": [{"file": "senses.png", "caption": "By layer"}],
        "sentences": [{"en": "Better than guessing: 81.2 %.", "zh": "优于随机：81.2 %。"}], "more": 1,
    }  # fmt: skip
    (folder / "probe.json").write_text(json.dumps({**content, **changes}))
    return ProbeSource(rung, "senses", folder)


@pytest.fixture(scope="session")
def full_sources(tmp_path_factory: pytest.TempPathFactory) -> ReportSources:
    """Three rungs, three seeds, 500 items of which 40 are copies, label counts, a control and probes."""
    root = tmp_path_factory.mktemp("full")
    probes = (
        write_probe(root / "probes/bert", "bert"),
        write_probe(
            root / "probes/tfidf",
            "tfidf",
            meaningful=False,
            reason="No context.",
            headline={},
            figures=[],
            sentences=[],
        ),
    )
    controls = (Control(ingredient="pretraining", without="lstm", with_="bert"),)
    return build_sources(
        root, {"tfidf": 0.6, "lstm": 0.7, "bert": 0.9}, leaked=40, curve=True, controls=controls, probes=probes
    )


@pytest.fixture
def build() -> Build:
    return build_sources


@pytest.fixture
def make_probe() -> Callable[..., ProbeSource]:
    return write_probe
