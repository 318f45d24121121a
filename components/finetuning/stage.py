"""Encoder and labelled examples in, task model and predictions out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.errors import ArtifactError
from components.examples import Example
from components.finetuning.config import FinetuningConfig
from components.finetuning.data import read_task_data
from components.finetuning.families import FAMILIES
from components.finetuning.fitting import FittingInputs, check_loaded, write_load_report
from components.finetuning.predict import TASK_FILE, TaskPredictor, load_predictor
from components.finetuning.tasks import TASKS
from components.formats import read_encoder_card, write_json
from components.predictions import Prediction, read_predictions, write_predictions


def finetune(
    config: FinetuningConfig,
    *,
    encoder: Path,
    dataset: Path,
    out_dir: Path,
    checkpoint_dir: Path | None = None,
    log_metrics: LogMetrics = ignore_metrics,
) -> Metrics:
    """Fit a task head, and the encoder below it where it can be trained, to labelled examples.

    Feature-based rungs get logistic regression on fixed features; recurrent encoders and BERT are fine-tuned as a
    whole (Howard & Ruder 2018; Devlin et al. 2019, section 4). Predictions are made by the saved model, loaded again
    from its folder, so that what is scored is what can be served.

    Args:
        config: Settings.
        encoder: Encoder artifact of any family.
        dataset: Dataset artifact.
        out_dir: Receives ``model/``, both splits' predictions and ``load_report.json``.
        checkpoint_dir: Where to save and resume training; None trains in one go.
        log_metrics: Receives training and validation metrics.

    Returns:
        Costs and validation scores; see docs/metrics.md.

    Raises:
        InputError: The data set cannot be used; names file, line and value.
        ConfigError: A setting that the encoder cannot follow.
        ArtifactError: ``encoder`` is no encoder artifact.
        TrainingError: The encoder's weights were not loaded, or training diverged.
    """
    data = read_task_data(dataset, config.num_train_examples, config.seed, config.unseen_label)
    name = read_encoder_card(encoder)["family"]
    if name not in FAMILIES:
        raise ArtifactError(f"{encoder}: unknown encoder family {name!r}, expected one of {', '.join(FAMILIES)}")
    model_dir = out_dir / "model"
    model_dir.mkdir()
    task = TASKS[config.task]
    inputs = FittingInputs(encoder, data, task, config, model_dir, checkpoint_dir, log_metrics)
    fitted = FAMILIES[name].fit(inputs)
    check_loaded(encoder, fitted.report)
    write_load_report(out_dir / "load_report.json", name, fitted.report)
    write_json(model_dir / TASK_FILE, {"task": config.task, "family": name, "labels": data.labels, **fitted.facts})
    predictor = load_predictor(model_dir)
    _write(out_dir / "validation_predictions.jsonl", predictor, data.validation)
    started = time.perf_counter()
    _write(out_dir / "predictions.jsonl", predictor, data.test)
    seconds = time.perf_counter() - started
    scores = task.score(data.validation, read_predictions(out_dir / "validation_predictions.jsonl"))
    return {
        **fitted.metrics,
        **{f"val_{name}": value for name, value in scores.items()},
        "num_parameters": fitted.num_parameters,
        "model_bytes": sum(path.stat().st_size for path in model_dir.rglob("*") if path.is_file()),
        "test_items_per_second": len(data.test) / seconds,
        "num_train_examples": len(data.train),
        "num_test_items": len(data.test),
        "num_unseen_labels": data.num_unseen_labels,
    }


def _write(path: Path, predictor: TaskPredictor, examples: Sequence[Example]) -> None:
    def rows() -> Iterator[Prediction]:
        predictions = predictor.stream(example.text for example in examples)
        for example, prediction in zip(examples, predictions, strict=True):
            yield replace(prediction, id=example.id)

    write_predictions(path, rows())
