"""Leak audit and coverage: what was a copy, what was read, kept, dropped, cut and scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from components.errors import ArtifactError
from components.examples import SPLITS
from components.report.content import Block, Cell, Column, Fold, Heading, Name, Number, Paragraph, Piece, Section, Table
from components.report.content import text_cell as cell
from components.report.sources import JsonFile
from components.report.writing import TaskFiles, Writing, row_keys

LEAKS = {
    "items": "num_test", "leaked": "num_test_leaked", "leaked_exact": "num_test_leaked_exact",
    "near_train": "num_test_near_in_train", "near_validation": "num_test_near_in_validation",
    "removed": "num_train_removed_duplicate_of_test", "contradictory": "num_texts_contradictory",
}  # fmt: skip
SCORED = (
    "num_gold_tokens", "num_scored_tokens", "num_gold_entities", "num_unseen_labels", "num_gold_answers",
    "num_gold_unplaced", "num_unplaced_questions", "num_unanswerable", "num_predicted_no_answer",
)  # fmt: skip
CUT = (
    "num_truncated", "num_truncated_train", "num_windowed", "num_windowed_train", "num_windows_left_out",
    "num_unknown_texts", "num_tokens_without_pieces", "num_answer_in_no_window", "num_passage_without_pieces",
)  # fmt: skip
UNITS = ("num_rows", "num_questions")
"""Names of the total of labelled rows; those dropped are named after it and the reason."""
REASONS = {
    "num_rows": ("contradictory_label", "contradictory_tags", "duplicate", "empty_text", "over_limit", "span_mismatch"),
    "num_questions": ("duplicate", "empty_text", "inconsistent_answers", "no_valid_answer", "over_limit"),
}


def leaks_section(writing: Writing) -> Section:
    """Copies across splits, what they do to the verdict, and copies in the corpus."""
    columns = (Column(writing.word("task"), "text"), *(Column(writing.word(name)) for name in LEAKS))
    rows = tuple(
        (
            cell(writing.word(files.task)),
            *(_count_or_dash(writing, files.audit, "counts", name) for name in LEAKS.values()),
        )
        for files in writing.tasks
    )
    views = tuple(row for files in writing.tasks for row in _view_rows(writing, files))
    titles = writing.columns("task", "view", "best_rung", "mean", "items", text=3)
    blocks: tuple[Block | None, ...] = (
        Paragraph(((writing.word("leaks_intro"),),), "note"),
        Table(columns, rows, writing.word("leaks_labelled")),
        Table(titles, views, writing.word("leaks_views")),
        writing.counts_table(writing.word("leaks_corpus"), list(_corpus_leaks(writing))),
    )
    return Section("leaks", writing.word("leaks"), tuple(block for block in blocks if block is not None))


def _view_rows(writing: Writing, files: TaskFiles) -> Iterator[tuple[Cell, ...]]:
    for view in files.views:
        keys = row_keys(view, 0)
        mean = writing.number(files.verdict, *keys, "mean", kind="score")
        yield (
            cell(writing.word(files.task)),
            cell(writing.word(f"view_{view}")),
            cell(Name(files.rungs(view)[0]["rung"])),
            cell(mean, " (", *writing.template("interval", files.verdict, *keys), ")"),
            cell(writing.number(files.verdict, "views", view, "num_items")),
        )


def _corpus_leaks(writing: Writing) -> Iterator[tuple[str, Number]]:
    audit = writing.library.open(writing.sources.corpus, "audit.json")
    yield writing.word("held_out_texts"), writing.number(audit, "num_held_out_texts")
    yield writing.word("held_out_found"), writing.number(audit, "held_out_ids_found")
    for reason in audit.at("num_documents_dropped"):
        title = writing.word("documents_dropped", reason=_plain(reason))
        yield title, writing.number(audit, "num_documents_dropped", reason)
    yield writing.word("documents_trimmed"), writing.number(audit, "num_documents_trimmed")
    yield writing.word("sentences_dropped"), writing.number(audit, "num_sentences_dropped")


def coverage_section(writing: Writing) -> Section:
    """Scored is gold, and what was read is kept or dropped for a reason."""
    blocks: list[Block] = [Paragraph(((writing.word("coverage_intro"),),), "note")]
    for files in writing.tasks:
        blocks += [Heading(writing.word(files.task)), *_task_coverage(writing, files)]
    corpus = writing.library.manifest(writing.sources.corpus)
    if corpus is not None:
        table = writing.counts_table(writing.word("coverage_corpus"), list(_corpus_rows(writing, corpus)))
        blocks += [] if table is None else [table]
    return Section("coverage", writing.word("coverage"), tuple(blocks))


def _task_coverage(writing: Writing, files: TaskFiles) -> Iterator[Block]:
    folder = files.sources.prepared
    prepared = None if folder is None else writing.library.manifest(folder)
    if prepared is None:
        yield Paragraph(((writing.word("prepared_missing"),),), "note")
    elif table := writing.counts_table(writing.word("coverage_read"), list(_read_rows(writing, prepared))):
        yield table
    if table := writing.counts_table(writing.word("coverage_audit"), list(_audit_rows(writing, files.audit))):
        yield table
    yield _scored_table(writing, files)
    if cut := _cut_table(writing, files):
        yield cut


def _scored_table(writing: Writing, files: TaskFiles) -> Fold:
    """Gold and scored items of every rung, from the evaluations, refused where they differ."""
    counts = files.audit
    gold = counts.at("counts", "num_test")
    manifests = _manifests(writing, files, files.sources.evaluations)
    for rung, found in manifests.items():
        for manifest in found:
            if (scored := manifest.at("metrics", "num_test_items")) != gold:
                raise ArtifactError(
                    f"{files.task}, rung {rung!r}: {scored:.0f} test items are scored, the data set has {gold}; "
                    "evaluate it again on this data set"
                )
    extra = [name for name in SCORED if any(name in one.at("metrics") for found in manifests.values() for one in found)]
    columns = writing.columns("rung", "seeds", "gold_items", "scored_items", *extra)
    rows = tuple(
        (cell(Name(rung)), cell(str(len(found))), cell(writing.number(counts, "counts", "num_test")),
         *(_range(writing, found, name) for name in ("num_test_items", *extra)))
        for rung, found in manifests.items()
    )  # fmt: skip
    return Fold(writing.word("coverage_scored"), (Table(columns, rows),))


def _cut_table(writing: Writing, files: TaskFiles) -> Fold | None:
    """What fine-tuning cut, from its manifests; None where they count nothing."""
    manifests = _manifests(writing, files, files.sources.finetuned)
    names = [name for name in CUT if any(name in one.at("metrics") for found in manifests.values() for one in found)]
    if not names:
        return None
    rows = tuple(
        (cell(Name(rung)), *(_range(writing, found, name) for name in names)) for rung, found in manifests.items()
    )
    return Fold(writing.word("coverage_cut"), (Table(writing.columns("rung", *names), rows),))


def _manifests(
    writing: Writing, files: TaskFiles, folders: Mapping[str, tuple[Path, ...]]
) -> dict[str, list[JsonFile]]:
    """Manifests of the runs of each rung, in the order of the leaderboard."""
    order = [row["rung"] for row in files.rungs(files.primary)]
    rungs = sorted(folders, key=lambda rung: (order.index(rung) if rung in order else len(order), rung))
    return {rung: [writing.library.open(path, "manifest.json") for path in folders[rung]] for rung in rungs}


def _range(writing: Writing, manifests: list[JsonFile], name: str) -> Cell:
    """A metric over seeds: one number, or the least and the most; a dash where the rung has no such thing."""
    found = sorted((one for one in manifests if name in one.at("metrics")), key=lambda one: one.at("metrics", name))
    if not found:
        return cell("–")
    ends = [found[0]] if found[0].at("metrics", name) == found[-1].at("metrics", name) else [found[0], found[-1]]
    pieces: list[Piece] = []
    for end in ends:
        pieces += ["–"] if pieces else []
        pieces.append(writing.number(end, "metrics", name))
    return cell(*pieces)


def _read_rows(writing: Writing, prepared: JsonFile) -> Iterator[tuple[str, Number]]:
    metrics = prepared.at("metrics")
    for unit in UNITS:
        if unit not in metrics:
            continue
        yield writing.word("rows_read"), writing.number(prepared, "metrics", unit)
        for split in SPLITS:
            yield writing.word(f"kept_{split}"), writing.number(prepared, "metrics", f"num_{split}")
        for reason in REASONS[unit]:
            if metrics.get(f"{unit}_{reason}"):
                title = writing.word("dropped", reason=_plain(reason))
                yield title, writing.number(prepared, "metrics", f"{unit}_{reason}")


def _audit_rows(writing: Writing, audit: JsonFile) -> Iterator[tuple[str, Number]]:
    counts = audit.at("counts")
    for split in SPLITS:
        prefix = f"num_{split}_removed_"
        removed = [name for name in counts if name.startswith(prefix) and counts[name]]
        if not removed:
            continue
        yield writing.word("before_audit", split=split), writing.number(audit, "counts", f"num_{split}_in")
        for name in removed:
            title = writing.word("taken_out", split=split, reason=_plain(name.removeprefix(prefix)))
            yield title, writing.number(audit, "counts", name)
        yield writing.word("after_audit", split=split), writing.number(audit, "counts", f"num_{split}")


def _corpus_rows(writing: Writing, corpus: JsonFile) -> Iterator[tuple[str, Number]]:
    metrics = corpus.at("metrics")
    yield writing.word("documents_read"), writing.number(corpus, "metrics", "num_documents_read")
    yield writing.word("documents_kept"), writing.number(corpus, "metrics", "num_documents")
    for name in metrics:
        if name.startswith("num_dropped_") and metrics[name]:
            title = writing.word("dropped", reason=_plain(name.removeprefix("num_dropped_")))
            yield title, writing.number(corpus, "metrics", name)


def _count_or_dash(writing: Writing, file: JsonFile, *keys: str) -> Cell:
    *path, name = keys
    return cell(writing.number(file, *keys)) if name in file.at(*path) else cell("–")


def _plain(name: str) -> str:
    return name.replace("_", " ")
