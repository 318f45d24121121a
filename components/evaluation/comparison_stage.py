"""All predictions of one task in, the verdict and its evidence out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.evaluation.comparison import read_compared
from components.evaluation.comparison_config import ComparisonConfig
from components.evaluation.label_curve import build_label_curve
from components.evaluation.verdict import build_verdict
from components.evaluation.verdict_pictures import draw_costs, draw_label_curve, draw_pairs, draw_scores, save_picture
from components.formats import write_json


def compare(
    config: ComparisonConfig,
    *,
    predictions: tuple[Path, ...],
    dataset: Path,
    out_dir: Path,
    log_metrics: LogMetrics = ignore_metrics,
) -> Metrics:
    """Which rung is best on a task, which is the cheapest that is about as good, and how sure that is.

    Everything is a function of predictions, gold and the settings; the costs come from the entries in the settings.

    Args:
        config: Settings; ``config.entries`` says who made each of ``predictions``.
        predictions: For each entry the fine-tuning artifact with ``predictions.jsonl``.
        dataset: Dataset artifact with ``task.json``, ``train.jsonl`` and ``test.jsonl``.
        out_dir: Receives ``verdict.json``, ``verdict.png`` (scores and intervals), ``costs.png``, ``pairs.png``
            (differences of pairs) and, where several label counts were run, ``label_curve.json`` and
            ``label_curve.png``.
        log_metrics: Receives ``progress``.

    Returns:
        Numbers of rungs, pairs and separable pairs, mean of the best and of the chosen rung, the p value of the lead,
        the minimum detectable difference, and items in each view.

    Raises:
        ConfigError: Entries and predictions differ in number, or the rungs share no number of labels.
        InputError: Predictions do not match the gold items one to one, or the primary view is empty.
        ArtifactError: The dataset has no task.
    """
    compared = read_compared(config, predictions, dataset)
    log_metrics({"progress": 0.4})
    verdict = build_verdict(config, compared)
    log_metrics({"progress": 0.7})
    curve = build_label_curve(config, compared)
    write_json(out_dir / "verdict.json", verdict)
    save_picture(draw_scores(verdict, config.picture_language), out_dir / "verdict.png")
    save_picture(draw_costs(verdict, config.picture_language), out_dir / "costs.png")
    if verdict["views"][config.primary_view]["pairs"]:
        save_picture(draw_pairs(verdict, config.picture_language), out_dir / "pairs.png")
    if curve is not None:
        write_json(out_dir / "label_curve.json", curve)
        save_picture(draw_label_curve(curve, config.picture_language), out_dir / "label_curve.png")
    log_metrics({"progress": 1.0})
    return _metrics(verdict, curve)


def _metrics(verdict: dict[str, Any], curve: dict[str, Any] | None) -> Metrics:
    view = verdict["views"][verdict["primary_view"]]
    rows = {row["rung"]: row for row in view["rungs"]}
    metrics = {
        f"best_{verdict['metric']}": rows[view["best"]]["mean"],
        f"cheapest_within_noise_{verdict['metric']}": rows[view["cheapest_within_noise"]]["mean"],
        "num_rungs": len(rows),
        "num_pairs": len(view["pairs"]),
        "num_separable_pairs": sum(pair["significant"] for pair in view["pairs"]),
        "num_test_items": verdict["views"]["all"]["num_items"] if "all" in verdict["views"] else 0,
        "num_clean_items": verdict["views"]["never_leaked"]["num_items"] if "never_leaked" in verdict["views"] else 0,
    }
    if view["pairs"]:
        lead = view["pairs"][0]
        metrics |= {"lead": lead["difference"], "lead_p_holm": lead["p_holm"]}
    if view["minimum_detectable_difference"] is not None:
        metrics["minimum_detectable_difference"] = view["minimum_detectable_difference"]
    if curve is not None:
        metrics["num_crossings"] = sum(found["kind"] == "crosses" for found in curve["crossings"])
    return {name: float(value) for name, value in metrics.items()}
