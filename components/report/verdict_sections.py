"""The sections that rest on the verdict: in words, as leaderboard, against cost, over labels, by ingredient."""

from __future__ import annotations

from collections.abc import Iterator

from components.report.content import (
    Bar,
    Block,
    Bullets,
    Cell,
    Column,
    Fold,
    Heading,
    Name,
    Paragraph,
    Piece,
    Pieces,
    Section,
    Table,
)
from components.report.content import text_cell as cell
from components.report.drawings import draw_cost_picture, draw_curve_picture
from components.report.writing import TaskFiles, Writing, row_keys

LEAD = ("best", "only_rung", "all_tied", "cheaper")
"""Beginnings of the kinds that answer the question, the choice last; the others say how far the answer carries."""
WARNINGS = ("leak_only_winner", "none_clean", "one_seed", "test_too_small", "seeds_too_few", "views_differ")
SHOWN_INGREDIENTS = ("ingredient_adds", "ingredient_costs")
MAX_SENTENCES = 4
"""Most sentences about a label curve; the table has every pair."""


def verdict_section(writing: Writing) -> Section:
    """Which rung to use for each task, in few words; what this rests on is folded below."""
    blocks: list[Block] = [Paragraph(((writing.word("verdict_intro"),),), "note")]
    for files in writing.tasks:
        blocks += [Heading(writing.word(files.task)), *_in_words(writing, files)]
    note = writing.word("verdict_note", level=writing.level(writing.tasks[0]))
    return Section("verdict", writing.word("verdict"), (*blocks, Paragraph(((note,),), "note")))


def _in_words(writing: Writing, files: TaskFiles) -> Iterator[Block]:
    kinds = [data["kind"] for data in files.verdict.at("sentences")]
    lead = [position for position, kind in enumerate(kinds) if kind.startswith(LEAD)]
    warnings = [position for position, kind in enumerate(kinds) if kind in WARNINGS]
    # Ingredients have a section of their own.
    rest = [at for at, kind in enumerate(kinds) if at not in {*lead, *warnings} and not kind.startswith("ingredient_")]
    yield Paragraph((writing.short("use_", files.verdict, "sentences", lead[-1]),), "headline")
    short = (writing.short("short_", files.verdict, "sentences", position) for position in lead)
    yield Paragraph((*short, _scores(writing, files)))
    warned = [writing.short("short_", files.verdict, "sentences", position) for position in warnings]
    yield from (Paragraph((one,), "warning") for one in warned)
    in_full = [writing.sentence(files.verdict, "sentences", position) for position in (*lead, *warnings, *rest)]
    yield Fold(writing.word("evidence"), (Bullets(tuple(one for one in in_full if one not in warned)),))


def _scores(writing: Writing, files: TaskFiles) -> Pieces:
    """Score and interval of the choice and of the best rung."""
    view = files.verdict.at("views", files.primary)
    names = [row["rung"] for row in view["rungs"]]
    metric = writing.word(files.verdict.at("metric"))
    pieces: list[Piece] = [metric[0].upper() + metric[1:], writing.word("colon")]
    for place, name in enumerate(dict.fromkeys((view["cheapest_within_noise"], view["best"]))):
        pieces += [writing.word("list_next")] if place else []
        pieces += writing.template("scored", files.verdict, *row_keys(files.primary, names.index(name)))
    return (*pieces, writing.word("stop"))


def leaderboard_section(writing: Writing) -> Section:
    """A table per task: score with interval, both views, and what it costs."""
    level = writing.level(writing.tasks[0])
    blocks: list[Block] = [Paragraph(((writing.word("leaderboard_intro", level=level),),), "note")]
    for files in writing.tasks:
        blocks += [Heading(writing.word(files.task)), _leaderboard(writing, files)]
    views = dict.fromkeys(writing.word(files.primary) for files in writing.tasks)
    notes = tuple((writing.word("leaderboard_views", primary=view),) for view in views)
    return Section("leaderboard", writing.word("leaderboard"), (*blocks, Paragraph(notes, "note")))


def _leaderboard(writing: Writing, files: TaskFiles) -> Table:
    level = writing.level(files)
    rows = files.rungs(files.primary)
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    others = [view for view in files.views if view != files.primary]
    columns = (
        Column(writing.word("rung"), "text"),
        Column(writing.word(files.verdict.at("metric"))),
        Column(writing.word("interval", level=level)),
        Column("", "bar"),
        *(Column(writing.word(f"view_{view}")) for view in others),
        *(Column(writing.word(name)) for name in ("seeds", "train", "parameters", "size", "speed")),
    )
    lines = (_leaderboard_row(writing, files, position, others, low, high) for position in range(len(rows)))
    return Table(columns, tuple(lines))


def _leaderboard_row(
    writing: Writing, files: TaskFiles, position: int, others: list[str], low: float, high: float
) -> tuple[Cell, ...]:
    keys, row = row_keys(files.primary, position), files.rungs(files.primary)[position]
    view = files.verdict.at("views", files.primary)
    badges = [writing.word("badge_best")] if row["rung"] == view["best"] else []
    badges += [writing.word("badge_chosen")] if row["rung"] == view["cheapest_within_noise"] else []
    span = (high - low) or 1.0
    bar = Bar((row["low"] - low) / span, (row["high"] - low) / span, (row["mean"] - low) / span)
    kinds = {"num_seeds": "count", "train_seconds": "seconds", "num_parameters": "big", "model_bytes": "size"}
    return (
        cell(Name(row["rung"]), badges=badges),
        cell(writing.number(files.verdict, *keys, "mean", kind="score")),
        Cell(writing.template("interval", files.verdict, *keys)),
        Cell(bar=bar),
        *(_other_view(writing, files, other, row["rung"]) for other in others),
        *(cell(writing.number(files.verdict, *keys, name, kind=kind)) for name, kind in kinds.items()),
        cell(writing.number(files.verdict, *keys, "items_per_second", kind="about")),
    )


def _other_view(writing: Writing, files: TaskFiles, view: str, rung: str) -> Cell:
    position = [row["rung"] for row in files.rungs(view)].index(rung)
    return cell(writing.number(files.verdict, *row_keys(view, position), "mean", kind="score"))


def costs_section(writing: Writing) -> Section:
    """Score against training time, a picture per task."""
    blocks: list[Block] = [Paragraph(((writing.word("costs_intro"),),), "note")]
    for files in writing.tasks:
        blocks += [Heading(writing.word(files.task)), draw_cost_picture(writing, files)]
    return Section("costs", writing.word("costs"), tuple(blocks))


def labels_section(writing: Writing) -> Section | None:
    """Scores over label counts, where several were run."""
    tasks = [files for files in writing.tasks if files.curve is not None]
    if not tasks:
        return None
    level = writing.level(tasks[0])
    blocks: list[Block] = [Paragraph(((writing.word("labels_intro", level=level),),), "note")]
    for files in tasks:
        blocks += [Heading(writing.word(files.task)), *_label_blocks(writing, files)]
    return Section("labels", writing.word("labels"), tuple(blocks))


def _label_blocks(writing: Writing, files: TaskFiles) -> Iterator[Block]:
    curve = files.curve
    assert curve is not None
    yield draw_curve_picture(writing, files)
    crossings = list(enumerate(curve.at("crossings")))
    best = files.verdict.at("views", files.primary, "best")
    # The question of most readers first: when does the best rung pay over the others?
    first = sorted(crossings, key=lambda item: item[1]["rung"] != best)[:MAX_SENTENCES]
    if first:
        yield Bullets(tuple(writing.sentence(curve, "crossings", position) for position, _ in first))
        rows = tuple(_crossing_row(writing, files, position) for position, _ in crossings)
        titles = writing.columns("rung", "over", "finding", "from_labels", "interval_labels", text=3)
        yield Fold(writing.word("labels_table"), (Table(titles, rows),))
    points = tuple(
        (cell(Name(line["rung"])),
         cell(writing.number(curve, "curves", at, "points", n, "num_labels")),
         cell(writing.number(curve, "curves", at, "points", n, "mean", kind="score")),
         Cell(writing.template("interval", curve, "curves", at, "points", n)),
         cell(writing.number(curve, "curves", at, "points", n, "num_seeds")))
        for at, line in enumerate(curve.at("curves")) for n in range(len(line["points"]))
    )  # fmt: skip
    titles = (
        *writing.columns("rung", "num_labels", "score"),
        Column(writing.word("interval", level=writing.level(files))),
        Column(writing.word("seeds")),
    )
    yield Fold(writing.word("labels_points"), (Table(titles, points),))


def _crossing_row(writing: Writing, files: TaskFiles, position: int) -> tuple[Cell, ...]:
    curve = files.curve
    assert curve is not None
    keys = ("crossings", position)
    data = curve.at(*keys)
    names = cell(Name(data["rung"])), cell(Name(data["over"])), cell(writing.word(f"kind_{data['kind']}"))
    if data["kind"] != "crosses":
        return (*names, cell("–"), cell("–"))
    low, high = (writing.template(f"{end}_{data[f'{end}_is']}", curve, *keys) for end in ("low", "high"))
    return (*names, cell(writing.number(curve, *keys, "num_labels", kind="about")), cell(*low, " – ", *high))


def controls_section(writing: Writing) -> Section | None:
    """What each ingredient adds, where pairs of rungs isolate one."""
    tasks = [files for files in writing.tasks if files.verdict.at("views", files.primary, "controls")]
    if not tasks:
        return None
    level = writing.level(tasks[0])
    blocks: list[Block] = [Paragraph(((writing.word("controls_intro", level=level),),), "note")]
    for files in tasks:
        blocks += [Heading(writing.word(files.task)), _controls(writing, files)]
        shown = [n for n, data in enumerate(files.verdict.at("sentences")) if data["kind"] in SHOWN_INGREDIENTS]
        if shown:
            blocks.append(Bullets(tuple(writing.sentence(files.verdict, "sentences", n) for n in shown)))
    return Section("controls", writing.word("controls"), tuple(blocks))


def _controls(writing: Writing, files: TaskFiles) -> Table:
    rows = []
    for position, data in enumerate(files.verdict.at("views", files.primary, "controls")):
        keys = ("views", files.primary, "controls", position)
        rows.append((
            cell(Name(data["ingredient"])), cell(Name(data["without"])), cell(Name(data["with"])),
            cell(writing.word(f"effect_{data['effect']}")),
            Cell(writing.template("points_interval", files.verdict, *keys)),
            cell(writing.number(files.verdict, *keys, "p_holm", kind="p")),
        ))  # fmt: skip
    columns = writing.columns("ingredient", "without", "with", "finding", "difference", "p", text=4)
    return Table(columns, tuple(rows))
