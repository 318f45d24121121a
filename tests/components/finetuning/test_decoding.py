from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import torch

from components.examples import Answer, Question, TaggedText, tag_names
from components.finetuning.ner import decode_tags, find_problem, score_tags, split_tokens
from components.finetuning.outputs import SpanScores, TokenScores, outside_row
from components.finetuning.question_answering import decode_answers, score_answers, tune_threshold
from components.finetuning.rows import Row, Rows
from components.finetuning.spans import best_spans
from components.finetuning.tag_reader import TagHead, assemble_tokens
from components.finetuning.viterbi import best_tags, legal_tags
from components.predictions import AnswerPrediction

TAGS = tag_names(["LOC", "PER"])


def legal(tags: tuple[str, ...]) -> bool:
    text = "x" * len(tags)
    return not find_problem(TaggedText("", text, tuple((i, i + 1) for i in range(len(text))), tags), frozenset(TAGS))


def brute_force(scores: np.ndarray, transitions: np.ndarray | None) -> tuple[str, ...]:
    def total(path: tuple[int, ...]) -> float:
        between = 0.0 if transitions is None else sum(transitions[a, b] for a, b in itertools.pairwise(path))
        return float(sum(scores[i, tag] for i, tag in enumerate(path)) + between)

    paths = itertools.product(range(len(TAGS)), repeat=len(scores))
    best = max((path for path in paths if legal(tuple(TAGS[i] for i in path))), key=total)
    return tuple(TAGS[i] for i in best)


@pytest.mark.parametrize("crf", [False, True])
def test_viterbi_equals_brute_force(crf: bool) -> None:
    generator = np.random.default_rng(3)
    transitions = generator.normal(size=(5, 5)) if crf else None
    scores = [generator.normal(size=(length, 5)) for length in (1, 2, 3, 4, 5, 1, 3, 0)]
    found = best_tags([TokenScores(rows, transitions) for rows in scores], TAGS)
    for rows, path in zip(scores, found, strict=True):
        assert len(path) == len(rows)
        if len(rows):
            assert tuple(TAGS[index] for index in path) == brute_force(rows, transitions)


def test_a_token_without_pieces_is_outside_and_ends_an_entity() -> None:
    scores = np.zeros((4, 5))
    scores[0, 1] = scores[1, 2] = scores[3, 2] = 5.0
    scores[2] = outside_row(5)
    (path,) = best_tags([TokenScores(scores)], TAGS)
    assert [TAGS[index] for index in path][:3] == ["B-LOC", "I-LOC", "O"]
    assert legal(tuple(TAGS[index] for index in path))


def test_legal_tags_by_hand() -> None:
    start, follow = legal_tags(tuple(TAGS))
    assert np.isneginf(start).tolist() == [False, False, True, False, True]
    allowed = {(a, b) for a in TAGS for b in TAGS if follow[TAGS.index(a), TAGS.index(b)] == 0}
    forbidden = {(a, b) for a in TAGS for b in TAGS} - allowed
    assert forbidden == {(a, b) for a in TAGS for b in ("I-LOC", "I-PER") if a[2:] != b[2:]}


def test_crf_decoding_equals_brute_force_over_its_own_likelihood() -> None:
    """With the legal sequences alone: the best by Viterbi is the one that pytorch-crf finds likeliest."""
    torch.manual_seed(1)
    head = TagHead(4, len(TAGS), 0.0, crf=True)
    assert head.crf is not None
    for parameter in head.crf.parameters():
        torch.nn.init.normal_(parameter)
    for length in (1, 2, 4):
        emissions = torch.randn(1, length, len(TAGS))
        row = Row(0, {}, np.arange(length), np.arange(length))
        output = assemble_tokens(head, len(TAGS), Rows([row], [length]), [emissions[0].numpy()])
        (path,) = best_tags(output, TAGS)
        paths = [p for p in itertools.product(range(5), repeat=length) if legal(tuple(TAGS[i] for i in p))]
        with torch.no_grad():
            mask = torch.ones(1, length, dtype=torch.bool)
            likelihoods = [float(head.crf(emissions, torch.tensor([p]), mask=mask)) for p in paths]
        assert tuple(path) == paths[int(np.argmax(likelihoods))]


def test_crf_likelihood_equals_brute_force() -> None:
    """The library's normaliser sums over every sequence."""
    torch.manual_seed(2)
    head = TagHead(4, 3, 0.0, crf=True)
    assert head.crf is not None
    emissions = torch.randn(1, 3, 3)
    with torch.no_grad():
        total = sum(
            np.exp(float(head.crf(emissions, torch.tensor([p])))) for p in itertools.product(range(3), repeat=3)
        )
    assert total == pytest.approx(1.0, abs=1e-5)


def test_gold_scores_give_everything() -> None:
    generator = np.random.default_rng(0)
    examples, outputs = [], []
    for number in range(100):
        tags: list[str] = []
        for _ in range(int(generator.integers(0, 40))):
            choices = [tag for tag in TAGS if not tag.startswith("I-") or (tags and tags[-1][2:] == tag[2:])]
            tags.append(choices[int(generator.integers(len(choices)))])
        tokens = tuple((i, i + 1) for i in range(len(tags)))
        examples.append(TaggedText(str(number), "字" * len(tags), tokens, tuple(tags)))
        outputs.append(TokenScores(np.eye(5)[[TAGS.index(tag) for tag in tags]].reshape(-1, 5)))
    predictions = decode_tags(examples, outputs, {"labels": TAGS})
    assert [p.tags for p in predictions] == [e.tags for e in examples]
    assert score_tags(examples, predictions, {}) == {"entity_f1": 1.0}


def test_split_tokens() -> None:
    assert split_tokens("在 北\u3000京", "characters") == ((0, 1), (2, 3), (4, 5))
    text = "U.N. official, @bob's #tag!"
    assert [text[a:b] for a, b in split_tokens(text, "words")] == ["U.N", ".", "official", ",", "@bob's", "#tag", "!"]


# --- spans -----------------------------------------------------------------------------------------------------------


def span_scores(start: np.ndarray, end: np.ndarray, null: float = 0.0) -> SpanScores:
    offsets = np.stack([np.arange(len(start)), np.arange(len(start)) + 1], axis=1)
    return SpanScores(offsets, start, end, null)


@pytest.mark.parametrize("length", [1, 2, 7, 20])
@pytest.mark.parametrize("limit", [1, 3, 30])
def test_best_spans_equal_brute_force(length: int, limit: int) -> None:
    generator = np.random.default_rng(length * limit)
    start, end = generator.normal(size=length), generator.normal(size=length)
    spans = {(s, e): start[s] + end[e] for s in range(length) for e in range(s, min(length, s + limit))}
    expected: list[tuple[int, int]] = []
    for s, e in sorted(spans, key=lambda span: -spans[span]):
        if all(e < a or s > b for a, b in expected) and len(expected) < 4:
            expected.append((s, e))
    found = best_spans(span_scores(start, end), limit, 4)
    assert [(s, e) for s, e, _ in found] == expected
    assert [score for *_, score in found] == pytest.approx([spans[span] for span in expected])


def test_a_passage_without_pieces_has_no_answer() -> None:
    output = SpanScores(np.empty((0, 2), dtype=np.int64), np.empty(0), np.empty(0), 0.0)
    (found,) = decode_answers([Question("q", " ", "谁？", ())], [output], {"max_answer_length": 3, "num_candidates": 2})
    assert found == AnswerPrediction("q", "", 0, 0, 0.0, ())


def test_decoding_and_scoring_3219_questions_takes_less_than_5_seconds() -> None:
    generator = np.random.default_rng(0)
    text = "中文" * 250
    examples = [Question(str(n), text, "谁？", (Answer("文中文", 1),)) for n in range(3219)]
    outputs = [span_scores(generator.normal(size=500), generator.normal(size=500)) for _ in examples]
    facts = {
        "max_answer_length": 30,
        "num_candidates": 5,
        "language": "zh",
        "unanswerable": True,
        "threshold_metric": "f1",
    }
    started = time.process_time()
    predictions = decode_answers(examples, outputs, facts)
    facts, predictions = tune_threshold(examples, predictions, facts)
    score_answers(examples, predictions, facts)
    assert time.process_time() - started < 5


def prediction(name: str, answer: str, no_answer_score: float) -> AnswerPrediction:
    return AnswerPrediction(name, answer, 0, len(answer), no_answer_score, ())


def test_threshold_is_the_best_of_all_by_brute_force() -> None:
    generator = np.random.default_rng(5)
    facts = {"unanswerable": True, "language": "zh", "threshold_metric": "f1"}
    for _ in range(20):
        gold = [
            Question(str(n), "北京", "?", (Answer("北京", 0),) if generator.random() < 0.5 else ()) for n in range(9)
        ]
        # Scores repeat, so that some questions can only be silenced together.
        found = [
            prediction(q.id, "北京" if generator.random() < 0.7 else "京", float(generator.integers(-3, 4)))
            for q in gold
        ]
        tuned, after = tune_threshold(gold, found, facts)
        borders = [-9.0, *(p.no_answer_score for p in found)]
        best = max(
            score_answers(gold, [prediction(p.id, "" if p.no_answer_score > b else p.answer, 0) for p in found], facts)[
                "f1"
            ]
            for b in borders
        )
        assert score_answers(gold, after, facts)["f1"] == pytest.approx(best)
        assert [p.answer == "" for p in after] == [p.no_answer_score > tuned["no_answer_threshold"] for p in found]


def test_a_set_without_unanswerable_questions_always_answers() -> None:
    gold = [Question("q", "北京", "?", (Answer("北京", 0),))]
    found = [prediction("q", "京", 50.0)]
    facts, after = tune_threshold(gold, found, {"unanswerable": False, "no_answer_threshold": None})
    assert after == found
    assert facts["no_answer_threshold"] is None
