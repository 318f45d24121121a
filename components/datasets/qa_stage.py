"""The stage ``prepare_question_answering``: questions over passages, with every answer span checked."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.datasets.cloze_baselines import measure_baselines
from components.datasets.qa_alignment import Misaligned, align_answers, refuse_misaligned, report_rows
from components.datasets.qa_config import QuestionAnsweringDatasetConfig
from components.datasets.qa_sources import QuestionSource, read_questions
from components.datasets.questions import RawQuestion, check_consistent, check_texts, refuse_repeated_ids
from components.datasets.rows import file_digests, source_names, text_key
from components.datasets.splits import Dropped, limit_texts, split_of
from components.errors import InputError
from components.examples import SOURCE_SENTENCES, SPLITS, Answer, Question, write_examples, write_task
from components.formats import Split, write_json, write_jsonl
from components.text.conversion import ScriptConversion, convert_script
from components.text.normalization import NormalizationConfig

_ALWAYS_COUNTED = (
    *(f"num_answers_{outcome}" for outcome in ("exact", "repaired", "unplaced", "skipped", "empty", "dropped")),
    "num_questions_duplicate",
    "num_questions_empty_text",
    "num_questions_inconsistent_answers",
    "num_questions_no_valid_answer",
    "num_questions_over_limit",
    "num_questions_unanswerable",
    "num_questions_without_span",
)


@dataclass
class _Findings:
    """What preparing has counted and dropped so far."""

    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_ALWAYS_COUNTED, 0)))
    dropped: list[Dropped] = field(default_factory=list)
    misaligned: list[Misaligned] = field(default_factory=list)

    def drop(self, rows: Iterable[Dropped]) -> None:
        for row in rows:
            self.dropped.append(row)
            self.counts[f"num_questions_{row.reason}"] += 1


@dataclass(frozen=True)
class _Checked:
    """A question that stays, and what it was read from."""

    raw: RawQuestion
    answers: tuple[Answer, ...]

    @property
    def id(self) -> str:
        return self.raw.id

    @property
    def key(self) -> str:
        return self.raw.key


def prepare_question_answering(
    config: QuestionAnsweringDatasetConfig, *, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Read questions, check every answer span, split by article, and write one JSON-lines file per split.

    All checks are done before the first file is written. ``num_questions`` equals the questions of all splits plus
    those dropped for each reason; ``num_answers`` equals the exact, repaired, unplaced, skipped, empty and dropped
    (with their question) ones.

    Args:
        config: Source, policies, conversion and splits.
        out_dir: Receives ``task.json``, ``train.jsonl``, ``validation.jsonl``, ``test.jsonl``, ``dropped.jsonl``,
            ``misaligned.jsonl`` (every answer that was not at its offset), ``dataset.json`` and ``normalization.json``;
            for built questions also the sentences they were made from.
        log_metrics: Receives the counts.

    Returns:
        Counts of questions and answers.

    Raises:
        InputError: Input that cannot be used; with file, place, value and remedy.
    """
    started = time.perf_counter()
    findings = _Findings()
    source = read_questions(config)
    findings.counts["num_questions"] = sum(map(len, source.parts.values())) + source.num_duplicates
    findings.counts["num_questions_duplicate"] = source.num_duplicates
    refuse_repeated_ids(question for part in source.parts.values() for question in part)
    checked = {split: _check(part, config, findings) for split, part in source.parts.items()}
    splits = _make_splits(checked, config, findings)
    _write(out_dir, splits, source, config, findings)
    metrics = {name: float(count) for name, count in sorted(findings.counts.items())}
    metrics["dataset_seconds"] = time.perf_counter() - started
    log_metrics(metrics)
    return metrics


def _check(
    questions: Sequence[RawQuestion], config: QuestionAnsweringDatasetConfig, findings: _Findings
) -> list[_Checked]:
    checked = []
    for question in questions:
        check_texts(question)
        findings.counts["num_answers"] += len(question.answers)
        if question.is_empty:
            findings.counts["num_answers_dropped"] += len(question.answers)
            findings.drop([Dropped(question.id, "empty_text")])
            continue
        kept = check_consistent(question, findings.counts, stop=config.inconsistent == "stop")
        if kept is None:
            findings.counts["num_answers_dropped"] += sum(bool(answer.text.strip()) for answer in question.answers)
            findings.drop([Dropped(question.id, "inconsistent_answers")])
            continue
        answers = align_answers(kept, config.misaligned, findings.counts, findings.misaligned)
        if kept.answers and not answers:
            findings.drop([Dropped(question.id, "no_valid_answer")])
            continue
        checked.append(_Checked(kept, answers))
    if config.misaligned == "stop":
        refuse_misaligned(questions, findings.misaligned)
    return checked


def _make_splits(
    checked: dict[Split, list[_Checked]], config: QuestionAnsweringDatasetConfig, findings: _Findings
) -> dict[Split, list[_Checked]]:
    """Split what is missing off the training questions, then apply the limits."""
    splits: dict[Split, list[_Checked]] = {"train": [], "validation": [], "test": []}
    for question in checked["train"]:
        splits[_split_of(question.raw, checked, config)].append(question)
    splits.update({split: part for split, part in checked.items() if split != "train"})
    for split, limit in config.limits.items():
        splits[split], dropped = limit_texts(splits[split], limit, config.seed)
        findings.drop(dropped)
    for split in SPLITS:
        if not splits[split]:
            raise InputError(
                f"the {split} split is empty ({len(checked['train'])} questions in the training data)",
                remedy=f"add articles, or name a {split} file, raise {split}_fraction, or set split_by: paragraph",
            )
    return splits


def _split_of(question: RawQuestion, checked: Mapping[Split, Any], config: QuestionAnsweringDatasetConfig) -> Split:
    return split_of(
        text_key(question.article if config.split_by == "article" else question.passage),
        **config.fractions(checked),
        seed=config.seed,
    )


def _question(checked: _Checked, conversion: ScriptConversion) -> Question:
    passage = convert_script(checked.raw.passage, conversion)
    answers = tuple(_converted(answer, passage, conversion) for answer in checked.answers)
    return Question(checked.id, passage, convert_script(checked.raw.question, conversion), answers)


def _converted(answer: Answer, passage: str, conversion: ScriptConversion) -> Answer:
    # Conversion reads phrases, so an answer on its own may come out otherwise than within its passage.
    if answer.start is None:
        return Answer(convert_script(answer.text, conversion), None)
    return Answer(passage[answer.start : answer.start + len(answer.text)], answer.start)


def _write(
    out_dir: Path,
    splits: Mapping[Split, Sequence[_Checked]],
    source: QuestionSource,
    config: QuestionAnsweringDatasetConfig,
    findings: _Findings,
) -> None:
    for split in SPLITS:
        questions = [_question(checked, config.opencc) for checked in splits[split]]
        findings.counts[f"num_{split}"] = write_examples(out_dir, split, questions)
        findings.counts["num_questions_unanswerable"] += sum(not question.answers for question in questions)
        findings.counts["num_questions_without_span"] += sum(map(_has_no_span, questions))
    write_task(out_dir, "question_answering")
    write_json(out_dir / "normalization.json", NormalizationConfig().model_dump(mode="json"))
    write_jsonl(out_dir / "dropped.jsonl", map(asdict, findings.dropped))
    names = source_names(config.external_files()) if config.source == "files" else {}
    write_jsonl(out_dir / "misaligned.jsonl", report_rows(findings.misaligned, names))
    card: dict[str, Any] = {"counts": findings.counts, "source": config.source, "files": file_digests(config)}
    if source.built:
        card["baselines"] = _baselines(splits, source)
        write_jsonl(out_dir / SOURCE_SENTENCES, _source_sentences(splits, source))
    write_json(out_dir / "dataset.json", card)


def _has_no_span(question: Question) -> bool:
    return bool(question.answers) and all(answer.start is None for answer in question.answers)


def _baselines(splits: Mapping[Split, Sequence[_Checked]], source: QuestionSource) -> dict[str, dict[str, float]]:
    return {split: measure_baselines([source.built[checked.id] for checked in splits[split]]) for split in SPLITS}


def _source_sentences(splits: Mapping[Split, Sequence[_Checked]], source: QuestionSource) -> Iterable[dict[str, str]]:
    for split in SPLITS:
        for checked in splits[split]:
            yield {"id": checked.id, "text": source.built[checked.id].sentence}
