from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from components.encoders.pieces import Pieces, load_pieces
from components.examples import Answer, Example, Question, TaggedText
from components.finetuning.encoders import load_bert_encoder
from components.finetuning.ner import decode_tags, score_tags
from components.finetuning.passages import Passage, Targets, answer_pieces, make_targets
from components.finetuning.readers import ReaderInputs
from components.finetuning.span_reader import make_joint_reader
from components.finetuning.tag_reader import make_tag_reader
from components.finetuning.text_reader import cut_longest_first
from components.finetuning.windows import cut_windows, window_of_most_context
from components.text.normalization import NormalizationConfig


@pytest.mark.parametrize(("size", "overlap"), [(64, 16), (64, 0), (5, 4), (30, 29)])
def test_ft_07_windows_cover_everything_and_overlap_as_configured(size: int, overlap: int) -> None:
    for length in range(1, 1001):
        windows = cut_windows(length, size, overlap)
        covered = np.zeros(length, dtype=int)
        for start, end in windows:
            assert 0 < end - start <= size
            covered[start:end] += 1
        assert covered.min() >= 1
        assert windows[-1][1] == length
        for (_, end), (start, after) in itertools.pairwise(windows):
            assert end - start == overlap
            assert after > end
        assert all(end - start == size for start, end in windows[:-1])


def test_most_context_by_hand() -> None:
    windows = cut_windows(10, 6, 4)
    assert windows == [(0, 6), (2, 8), (4, 10)]
    # Position 4: two to its left and one to its right in the first window, two and three in the second.
    assert window_of_most_context(windows, 10).tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 2, 2]


def test_answer_pieces_by_hand() -> None:
    pieces = Pieces([1, 2, 3], [(0, 2), (2, 5), (6, 7)])
    assert answer_pieces(pieces, 0, 2) == (0, 0)
    assert answer_pieces(pieces, 1, 3) == (0, 1)
    assert answer_pieces(pieces, 3, 7) == (1, 2)
    assert answer_pieces(pieces, 5, 6) is None


def question(*answers: Answer) -> Question:
    return Question("q", "字" * 20, "?", answers)


def passage() -> Passage:
    pieces = Pieces([7] * 20, [(i, i + 1) for i in range(20)])
    return Passage([1], pieces, cut_windows(20, 8, 2))


def test_ft_08_answers_and_windows() -> None:
    """Windows are 0:8, 6:14, 12:20."""
    assert make_targets(question(Answer("字字", 6)), passage(), keep_all=True).columns == {
        0: (7, 8),
        1: (1, 2),
        2: (0, 0),
    }
    border = make_targets(question(Answer("字字字字", 6)), passage(), keep_all=True)
    assert border.columns == {0: (0, 0), 1: (1, 4), 2: (0, 0)}
    few = make_targets(question(Answer("字字字字", 6)), passage(), keep_all=False)
    assert few.num_left_out == 1
    assert len(few.columns) == 2
    assert few.columns[1] == (1, 4)
    assert make_targets(question(Answer("字" * 9, 0)), passage(), keep_all=True) == Targets({}, "answer_in_no_window")
    assert make_targets(question(Answer("东", None)), passage(), keep_all=True) == Targets({}, "answer_without_place")
    assert make_targets(question(), passage(), keep_all=False).columns == {0: (0, 0), 1: (0, 0), 2: (0, 0)}
    several = question(Answer("东", None), Answer("字" * 9, 0), Answer("字", 19))
    assert make_targets(several, passage(), keep_all=True).columns == {0: (0, 0), 1: (0, 0), 2: (8, 8)}


FACTS = {"labels": ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"], "crf": False, "max_seq_length": 16, "window_overlap": 5}


def bert_reader_inputs(folder: Path, **facts: object) -> ReaderInputs:
    return ReaderInputs(load_bert_encoder(folder), {**FACTS, **facts}, NormalizationConfig())


@pytest.mark.parametrize("reader_family", ["bert"])
def test_ft_13_and_ft_16_gold_scores_give_everything_for_words_of_any_number_of_pieces(
    reader_family: str, piece_encoder: Path
) -> None:
    """Words of 0 to 5 pieces, up to 600 of them, an entity near the end: training targets put through prediction."""
    words = ["\u200b", "in", "johnson", "people" + "s", "walkinging", "johnsonsings", "londoning"]
    pieces = load_pieces(piece_encoder, NormalizationConfig())
    assert {len(pieces.encode(word).ids) for word in words} >= {0, 1, 2, 3}
    generator = np.random.default_rng(0)
    examples = []
    for number, length in enumerate((1, 7, 50, 600)):
        text, tokens, tags = "", [], []
        for position in range(length):
            word = words[int(generator.integers(len(words)))]
            tokens.append((len(text), len(text) + len(word)))
            text += f"{word} "
            tags.append("O" if word == "\u200b" else ["O", "B-LOC", "B-PER"][position % 3])
        tags[length * 590 // 600] = "B-PER" if text[slice(*tokens[length * 590 // 600])] != "\u200b" else "O"
        examples.append(TaggedText(str(number), text, tuple(tokens), tuple(tags)))
    reader = make_tag_reader(bert_reader_inputs(piece_encoder))
    trained, read = reader.training_rows(examples), reader.rows(examples)
    assert len(trained.rows) == len(read.rows) > 50
    assert max(len(row.arrays["input_ids"]) for row in read.rows) == 16
    gold = [np.eye(5, dtype=np.float32)[row.arrays["tags"]] for row in trained.rows]
    outputs = reader.assemble(read, gold)
    assert [len(output.scores_TK) for output in outputs] == [len(example.tokens) for example in examples]
    predictions = decode_tags(examples, outputs, FACTS)
    assert [p.tags for p in predictions] == [e.tags for e in examples]
    assert score_tags(examples, predictions, FACTS) == {"entity_f1": 1.0}


@pytest.mark.parametrize("reader_family", ["bert"])
def test_joint_rows_have_the_standard_layout(reader_family: str, piece_encoder: Path) -> None:
    inputs = bert_reader_inputs(piece_encoder, max_question_length=5, doc_stride=2, unanswerable=False)
    reader = make_joint_reader(inputs)
    text = "李华今天在北京开会人人人人"
    rows = reader.training_rows([Question("q", text, "谁？", (Answer("北京", 5),))])
    cls, sep, who, mark = (
        inputs.loaded.pieces(NormalizationConfig()).tokenizer.convert_tokens_to_ids(p)
        for p in ("[CLS]", "[SEP]", "谁", "?")
    )
    first = rows.rows[0].arrays
    assert first["input_ids"][:4].tolist() == [cls, who, mark, sep]
    assert first["input_ids"][-1] == sep
    assert first["token_type_ids"].tolist() == [0] * 4 + [1] * 12
    assert first["passage"].tolist() == list(range(4, 15))
    assert first["columns"].tolist() == [6, 7]
    decoded = inputs.loaded.pieces(NormalizationConfig()).tokenizer.convert_ids_to_tokens(
        first["input_ids"][first["passage"]].tolist()
    )
    assert "".join(decoded[5:7]) == "北京"


@pytest.mark.parametrize("reader_family", ["bert"])
def test_gold_pointers_give_the_gold_answers_through_windows(reader_family: str, piece_encoder: Path) -> None:
    from components.finetuning.question_answering import decode_answers, score_answers

    inputs = bert_reader_inputs(piece_encoder, max_question_length=5, doc_stride=4, unanswerable=True)
    reader = make_joint_reader(inputs)
    text = "李华今天在１９９０年去\u200b了北 京开会" * 5
    questions = [
        Question(f"{start}:{end}", text, "谁？", (Answer(text[start:end], start),))
        for start in range(0, len(text), 3)
        for end in (start + 1, start + 3)
        if text[start:end].strip("\u200b ") == text[start:end] != ""
    ]
    trained, read = reader.training_rows(questions), reader.rows(questions)
    assert not trained.unused
    outputs = []
    for row, target in zip(read.rows, trained.rows, strict=True):
        output = np.zeros((1 + len(row.arrays["passage"]), 2), dtype=np.float32)
        output[target.arrays["columns"], [0, 1]] = 5.0
        outputs.append(output)
    facts = {"max_answer_length": 5, "num_candidates": 2, "language": "zh"}
    predictions = decode_answers(questions, reader.assemble(read, outputs), facts)
    assert [p.answer for p in predictions] == [q.answers[0].text for q in questions]
    assert score_answers(questions, predictions, facts) == {"f1": 1.0, "exact_match": 1.0}


@pytest.mark.parametrize("room", range(2, 12))
def test_pairs_are_cut_longest_first(room: int) -> None:
    for first in range(12):
        for second in range(12):
            a, b = first, second
            while a + b > room:
                a, b = (a - 1, b) if a > b else (a, b - 1)
            assert cut_longest_first(first, second, room) == (a, b)


@pytest.mark.parametrize("reader_family", ["bert"])
def test_pairs_are_read_jointly_with_token_types(reader_family: str, piece_encoder: Path) -> None:
    from components.finetuning.text_reader import encode_examples

    loaded = load_bert_encoder(piece_encoder)
    rows = encode_examples(
        loaded, [Example("1", "北京", "x", text_pair="上海"), Example("2", "北" * 9, "x", text_pair="上")], 9
    )
    assert rows.rows[0].arrays["token_type_ids"].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert rows.rows[1].arrays["token_type_ids"].tolist() == [0] * 7 + [1] * 2
    assert rows.counts["num_truncated"] == 1
