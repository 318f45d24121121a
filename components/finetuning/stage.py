"""Encoder and labelled examples in, task model and predictions out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.errors import ArtifactError, ConfigError, InputError
from components.examples import TaskName, read_task
from components.finetuning.config import FinetuningConfig
from components.finetuning.data import NORMALIZATION_FILE
from components.finetuning.families import FAMILIES
from components.finetuning.fitting import FittingInputs, Learner, check_loaded, write_load_report
from components.finetuning.predict import TASK_FILE, TaskPredictor, load_predictor
from components.finetuning.tasks import TASKS, Task
from components.formats import read_encoder_card, write_json
from components.predictions import write_predictions


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

    Feature-based rungs get logistic regression or a reader on fixed features; recurrent encoders and BERT are
    fine-tuned as a whole (Howard & Ruder 2018; Devlin et al. 2019, section 4). Predictions are made by the saved
    model, loaded again from its folder, so that what is scored is what can be served.

    Args:
        config: The task's settings; its ``task`` must be the data set's.
        encoder: Encoder artifact of any family.
        dataset: Dataset artifact.
        out_dir: Receives ``model/``, both splits' predictions, ``load_report.json`` and ``unused_examples.json``.
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
    task = _check_task(config, dataset)
    family, learner = _find_learner(encoder, task.name)
    data = task.read(dataset, config)
    model_dir = out_dir / "model"
    model_dir.mkdir()
    inputs = FittingInputs(encoder, data, task, config, model_dir, checkpoint_dir, log_metrics)
    fitted = learner.fit(inputs)
    check_loaded(encoder, fitted.report)
    write_load_report(out_dir / "load_report.json", family, fitted.report)
    write_json(out_dir / "unused_examples.json", fitted.unused)
    write_json(model_dir / NORMALIZATION_FILE, data.normalization.model_dump())
    write_json(model_dir / TASK_FILE, {**inputs.facts, "family": family, **fitted.facts})
    predictor, scores = _predict_validation(model_dir, task, data.validation, out_dir)
    started = time.perf_counter()
    write_predictions(out_dir / "predictions.jsonl", predictor.stream_examples(data.test))
    seconds = time.perf_counter() - started
    return {
        **fitted.metrics,
        **scores,
        "num_parameters": fitted.num_parameters,
        "model_bytes": sum(path.stat().st_size for path in model_dir.rglob("*") if path.is_file()),
        "test_items_per_second": len(data.test) / seconds,
        "num_train_examples": len(data.train),
        "num_test_items": len(data.test),
        "num_unseen_labels": data.num_unseen_labels,
    }


def _check_task(config: FinetuningConfig, dataset: Path) -> Task:
    found, task = read_task(dataset), TASKS[config.task]
    if found != config.task:
        raise InputError(
            f"the data set is for {found}, the configuration for {config.task}",
            file=dataset,
            remedy=f"set task: {found}, or give a data set for {config.task}",
        )
    if not isinstance(config, task.config):
        raise ConfigError(f"{config.task} needs {task.config.__name__}, not {type(config).__name__}")
    return task


def _find_learner(encoder: Path, task: TaskName) -> tuple[str, Learner]:
    family = read_encoder_card(encoder)["family"]
    if family not in FAMILIES:
        raise ArtifactError(f"{encoder}: unknown encoder family {family!r}, expected one of {', '.join(FAMILIES)}")
    learners = FAMILIES[family].learners
    if task not in learners:
        raise ConfigError(f"{encoder}: a {family} encoder cannot learn {task}; it can {', '.join(learners)}")
    return family, learners[task]


def _predict_validation(
    model_dir: Path, task: Task, examples: Sequence[Any], out_dir: Path
) -> tuple[TaskPredictor, Metrics]:
    """Predict validation with the saved model, tune what is tuned after training, and store that with the model."""
    predictor = load_predictor(model_dir)
    facts, predictions = task.tune(examples, list(predictor.stream_examples(examples)), predictor.facts)
    write_json(model_dir / TASK_FILE, facts)
    write_predictions(out_dir / "validation_predictions.jsonl", predictions)
    scores = task.score(examples, predictions, facts)
    return replace(predictor, facts=facts), {f"val_{name}": value for name, value in scores.items()}
