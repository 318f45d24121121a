from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from transformers import BertTokenizerFast

from components.bag_of_words.config import BagOfWordsConfig
from components.bag_of_words.stage import fit_bag_of_words
from components.encoders.pieces import Pieces
from components.encoders.wordpiece import save_wordpiece
from components.errors import TrainingError
from components.examples import Answer, Question, write_examples, write_task
from components.finetuning.config import QuestionAnsweringConfig
from components.finetuning.data import NORMALIZATION_FILE
from components.finetuning.fitting import FittingInputs
from components.finetuning.linear_pieces import NOTHING, PieceNgrams
from components.finetuning.linear_questions import KINDS, QuestionPieces, find_question_word, read_question
from components.finetuning.linear_span_features import (
    NUM_DENSE,
    NUM_MATCH,
    PassagePieces,
    column_sizes,
    read_passage,
    span_features,
)
from components.finetuning.linear_spans import NEVER, _choose, fit_spans, gold_borders, restore_spans
from components.finetuning.tasks import TASKS
from components.formats import write_json

PASSAGES = [
    "王小明在北京读书。李雷去了上海。",
    "张伟在广州工作。他爱南京大学。",
    "上海大学在上海。张伟说他爱北京。",
    "李雷说王小明去了南京。他在广州读书。",
]
QUESTIONS = [
    (0, "谁在北京读书？", "王小明"),
    (0, "李雷去了哪里？", "上海"),
    (1, "谁在广州工作？", "张伟"),
    (1, "他爱什么大学？", "南京大学"),
    (2, "上海大学在哪里？", "上海"),
    (2, "张伟说他爱哪里？", "北京"),
    (3, "王小明去了哪里？", "南京"),
    (3, "谁说王小明去了南京？", "李雷"),
]
CHARACTERS = "".join(dict.fromkeys("".join(PASSAGES) + "".join(question for _, question, _ in QUESTIONS)))
ROOT = Path(__file__).parents[3]


def question(number: int) -> Question:
    passage, asked, answer = QUESTIONS[number]
    start = PASSAGES[passage].rindex(answer) if number == 4 else PASSAGES[passage].index(answer)
    return Question(f"q{number}", PASSAGES[passage], asked, (Answer(answer, start),))


EXAMPLES = [question(number) for number in range(len(QUESTIONS))]
UNANSWERABLE = [
    Question(f"n{number}", PASSAGES[number], asked, ())
    for number, asked in enumerate(["火车何时到站？", "猫吃了多少鱼？", "谁发明了电灯？", "月球有多大？"])
]


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *CHARACTERS]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    save_wordpiece(BertTokenizerFast(vocab=str(folder / "vocab.txt")), folder)
    return folder


def make_dataset(folder: Path, examples: list[Question]) -> Path:
    folder.mkdir()
    write_task(folder, "question_answering")
    for split in ("train", "validation", "test"):
        write_examples(folder, split, examples)
    return folder


def fit(root: Path, examples: list[Question], tokenizer: Path, weighting: str = "tfidf", **settings: object):
    dataset = make_dataset(root / "dataset", examples)
    for name in ("bag", "model"):
        (root / name).mkdir()
    bag_config = BagOfWordsConfig(units="pieces", weighting=weighting)
    fit_bag_of_words(bag_config, dataset=dataset, tokenizer=tokenizer, out_dir=root / "bag")
    config, task = QuestionAnsweringConfig(**settings), TASKS["question_answering"]
    data = task.read(dataset, config)
    inputs = FittingInputs(root / "bag", data, task, config, root / "model", None, lambda *_, **__: None)
    fitted = fit_spans(inputs)
    write_json(root / "model" / NORMALIZATION_FILE, data.normalization.model_dump())
    return inputs, fitted, restore_spans(root / "model", inputs.facts, task, 32)


@pytest.mark.parametrize("weighting", ["one_hot", "tfidf"])
def test_overfits_eight_questions(tmp_path, tokenizer, weighting) -> None:
    inputs, fitted, score = fit(tmp_path, EXAMPLES, tokenizer, weighting, C=10.0)
    assert inputs.validate(score)["f1"] >= 0.95
    for example, output in zip(EXAMPLES, score(EXAMPLES), strict=True):
        assert output.offsets_P2.tolist() == [[index, index + 1] for index in range(len(example.text))]
        assert output.start_P.shape == output.end_P.shape == (len(example.text),)
        assert np.isfinite(output.start_P).all()
        assert np.isfinite(output.end_P).all()
        assert output.null == NEVER
    assert fitted.unused == {}


def test_questions_without_an_answer_teach_when_to_be_silent(tmp_path, tokenizer) -> None:
    inputs, _, score = fit(tmp_path, [*EXAMPLES, *UNANSWERABLE], tokenizer, C=10.0)
    assert inputs.validate(score)["f1"] >= 0.95
    nulls = [output.null for output in score([*EXAMPLES, *UNANSWERABLE])]
    assert min(nulls[len(EXAMPLES) :]) > max(nulls[: len(EXAMPLES)])


def test_a_question_does_not_depend_on_its_neighbours(tmp_path, tokenizer) -> None:
    _, _, score = fit(tmp_path, EXAMPLES, tokenizer, C=1.0)
    for example, output in zip(EXAMPLES, score(EXAMPLES), strict=True):
        alone = score([example])[0]
        np.testing.assert_array_equal(alone.start_P, output.start_P)
        np.testing.assert_array_equal(alone.end_P, output.end_P)


def test_empty_and_odd_inputs_get_scores(tmp_path, tokenizer) -> None:
    inputs, _, score = fit(tmp_path, [*EXAMPLES, *UNANSWERABLE], tokenizer, C=1.0)
    odd = [
        ("", "谁？"),
        ("王小明在北京。", "\u200b"),
        ("\u200b", "谁？"),
        ("王小明在北京。", "谁"),
        ("王", "谁在北京？"),
    ]
    examples = [Question(str(number), text, asked, ()) for number, (text, asked) in enumerate(odd)]
    outputs = score(examples)
    assert [len(output.start_P) for output in outputs] == [0, 7, 0, 7, 1]
    for output in outputs:
        assert output.offsets_P2.shape == (len(output.start_P), 2)
        assert np.isfinite([*output.start_P, *output.end_P, output.null]).all()
    assert len(inputs.task.decode(examples, outputs, inputs.facts)) == 5


def test_restored_in_a_fresh_process_it_gives_the_same_bits(tmp_path, tokenizer) -> None:
    _, _, score = fit(tmp_path, [*EXAMPLES, *UNANSWERABLE], tokenizer)
    script = (
        "import sys, numpy as np; from pathlib import Path\n"
        "from components.examples import read_any_examples\n"
        "from components.finetuning.linear_spans import restore_spans\n"
        "root = Path(sys.argv[1])\n"
        "score = restore_spans(root / 'model', {'language': 'zh'}, None, 32)\n"
        "outputs = score(read_any_examples(root / 'dataset', 'train'))\n"
        "np.savez(root / 'there.npz', *[[*o.start_P, *o.end_P, o.null] for o in outputs])\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, cwd=ROOT)
    with np.load(tmp_path / "there.npz") as there:
        for number, output in enumerate(score([*EXAMPLES, *UNANSWERABLE])):
            np.testing.assert_array_equal(there[f"arr_{number}"], [*output.start_P, *output.end_P, output.null])


def test_the_same_data_give_the_same_weights(tmp_path, tokenizer) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        fit(tmp_path / name, EXAMPLES, tokenizer, C=1.0)
    heads = [(tmp_path / name / "model" / "head.safetensors").read_bytes() for name in ("a", "b")]
    assert heads[0] == heads[1]


def test_answers_that_lie_in_no_piece_are_named(tmp_path, tokenizer) -> None:
    blank = Question("blank", "王小明\u200b在北京。", "谁？", (Answer("\u200b", 3),))
    nowhere = Question("nowhere", "王小明在北京。", "谁？", (Answer("李雷", None),))
    _, fitted, _ = fit(tmp_path, [*EXAMPLES, blank, nowhere], tokenizer, C=1.0)
    assert sorted(fitted.unused["answer_without_place"]) == ["blank", "nowhere"]
    assert fitted.metrics["num_answer_without_place"] == 2


def test_no_trainable_answer_at_all_is_refused(tmp_path, tokenizer) -> None:
    blank = Question("blank", "王小明\u200b在北京。", "谁？", (Answer("\u200b", 3),))
    with pytest.raises(TrainingError, match="none of 1 training questions"):
        fit(tmp_path, [blank], tokenizer)


# --- features by hand ------------------------------------------------------------------------------------------------

TOY = PieceNgrams(
    unigram_of_V=np.array([0, 1, 2, 3, NOTHING, 4]),
    unigram_weights=np.array([1.0, 2.0, 3.0, 4.0, 1.0]),
    bigram_keys=np.array([0 * 6 + 1]),
    bigram_weights=np.array([5.0]),
    unknown_weight=10.0,
)
"""Pieces 0 to 3 with weights 1 to 4, piece 4 unknown, the border is unigram 4; the pair (0, 1) weighs 5."""


def toy_passage(ids: list[int], starts: list[int]) -> PassagePieces:
    offsets = np.array([[index, index + 1] for index in range(len(ids))])
    pieces = Pieces(ids, [(start, end) for start, end in offsets.tolist()])
    return PassagePieces(pieces, np.array(ids), offsets, np.ones(len(ids), dtype=np.int64), np.array(starts))


def test_window_shares_by_hand() -> None:
    # Question 0 1 4 around a gap: single pieces weigh 1, 2, 10 of 13; its only pair is (0, 1).
    asked = QuestionPieces(np.array([0, 1, NOTHING, 4]), np.array([1, 0]), np.array([4]), KINDS.index("who"))
    passage = toy_passage([0, 1, 3, 2, 4, 2, 2, 2], [0, 4])
    features = span_features(TOY, asked, passage)
    assert features.dense_PD.shape == (8, NUM_DENSE)
    single, pair = features.dense_PD[:, :12], features.dense_PD[:, 12:24]
    # Piece 2 (id 3): on its left 0 and 1, on its right, within 4, piece 4.
    np.testing.assert_allclose(single[2, :3], [3 / 13, 10 / 13, 1.0], rtol=1e-6)
    np.testing.assert_allclose(pair[2, :3], [1.0, 0.0, 1.0], rtol=1e-6)
    # Piece 0 itself is left out: what is around it lacks the question's 0, and no whole pair is left.
    np.testing.assert_allclose(single[0, :3], [0.0, 12 / 13, 12 / 13], rtol=1e-6)
    np.testing.assert_allclose(pair[0, :3], [0.0, 0.0, 0.0])
    # The last piece sees four to the left with width 4 (piece 4 among them), all with width 8.
    np.testing.assert_allclose(single[7, [0, 3]], [10 / 13, 1.0], rtol=1e-6)
    assert (features.dense_PD >= 0).all()
    assert (features.dense_PD <= 1).all()


def test_matches_sentences_alignment_and_position_by_hand() -> None:
    asked = QuestionPieces(np.array([0, 1, NOTHING, 4]), np.array([1, 0]), np.array([4]), KINDS.index("who"))
    features = span_features(TOY, asked, toy_passage([0, 1, 3, 4, 2, 2], [0, 4]))
    exact, sentences, aligned, position = np.split(features.dense_PD[:, 24:], [7, 13, 19], axis=1)
    # Piece 2: neighbours -2 … +2 are 0 1 3 4 2; it neither ends nor begins a pair of the question; piece 1 ends one.
    assert exact[2].tolist() == [1, 1, 0, 1, 0, 0, 0]
    assert exact[1].tolist() == [0, 1, 1, 0, 1, 1, 0]
    assert exact[0].tolist() == [0, 0, 1, 1, 0, 0, 1]
    # The first sentence holds everything asked, the second nothing.
    np.testing.assert_allclose(sentences[0], [1, 1, 1, 1, 0, 0])
    np.testing.assert_allclose(sentences[5], [0, 0, 0, 0, 1, 0])
    # 3 stands where the question word does: after 0 1 and before 4; three pieces on a side are not there to compare.
    assert aligned[2].tolist() == [1, 1, 0, 1, 0, 0]
    assert aligned[3].tolist() == [0, 0, 0, 0, 0, 0]
    np.testing.assert_allclose(position[4], [4 / 6, np.log(5) / 10, 1.0], rtol=1e-6)
    np.testing.assert_allclose(features.match[:4], [1, 1, 1, 1])


def test_codes_stay_inside_their_columns() -> None:
    asked = QuestionPieces(np.array([0, 1]), np.array([]), np.array([]), KINDS.index("none"))
    features = span_features(TOY, asked, toy_passage([0, 1, 4], [0]))
    sizes = column_sizes(TOY)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    codes = features.codes_PK
    inside = (codes >= starts) & (codes < starts + np.array(sizes))
    assert (inside | (codes == NOTHING)).all()
    assert codes[2, 2] == NOTHING, "a piece outside the vocabulary has no identity"
    assert codes[0, 2] == starts[2] + 0
    assert codes[0, 1] == starts[1] + 4, "the border is an identity"
    # The pairs that piece 1 ends and begins: (0, 1) is known, (1, 4) is not.
    assert codes[1, 5:7].tolist() == [starts[5], NOTHING]


def test_empty_passage_has_features_without_rows() -> None:
    asked = QuestionPieces(np.array([0]), np.array([]), np.array([]), 0)
    passage = read_passage("", Pieces([], []), "zh")
    features = span_features(TOY, asked, passage)
    assert features.dense_PD.shape == (0, NUM_DENSE)
    assert features.codes_PK.shape == (0, len(column_sizes(TOY)))
    assert features.match.tolist() == [0.0] * NUM_MATCH


@pytest.mark.parametrize(
    "text, language, kind, word",
    [
        ("是谁在北京？", "zh", "who", "谁"),
        ("这本书有多少页", "zh", "how_many", "多少"),
        ("大会于哪一年召开？", "zh", "when", "哪一年"),
        ("他去了什么地方", "zh", "where", "什么地方"),
        ("什么机构发布了报告", "zh", "organization", "什么机构"),
        ("几乎没有什么变化", "zh", "what", "什么"),
        ("北京的天气", "zh", "none", ""),
        ("How many people live there when it rains?", "en", "how_many", "How many"),
        ("In what year did he leave?", "en", "when", "what year"),
        ("Whose somewhat odd idea was it?", "en", "who", "Whose"),
        ("Name the somewhat odd one", "en", "none", ""),
    ],
)
def test_question_words(text: str, language: str, kind: str, word: str) -> None:
    found, start, end = find_question_word(text, language)
    assert (found, text[start:end]) == (kind, word)


def test_a_question_is_taken_apart_at_its_question_word() -> None:
    text = "王小明爱谁吗"
    pieces = Pieces([10, 11, 12, 13, 14, 15], [(index, index + 1) for index in range(6)])
    asked = read_question(text, pieces, "zh")
    assert asked.ids.tolist() == [10, 11, 12, 13, NOTHING, 15]
    assert asked.left.tolist() == [13, 12, 11]
    assert asked.right.tolist() == [15]
    alone = read_question("谁", Pieces([14], [(0, 1)]), "zh")
    assert alone.ids.tolist() == [14]


def test_gold_borders_by_hand() -> None:
    # Pieces "ab", "c", "de" of the text "ab c de".
    pieces = Pieces([0, 1, 2], [(0, 2), (3, 4), (5, 7)])
    passage = read_passage("ab c de", pieces, "en")
    answers = (Answer("b c", 1), Answer("de", 5), Answer(" ", 2), Answer("x", None))
    borders = gold_borders(Question("q", "ab c de", "?", answers), passage)
    assert borders.tolist() == [[True, False], [False, True], [True, True]]


def test_rows_left_out_are_stood_for_by_weight() -> None:
    is_gold = np.zeros(103, dtype=bool)
    is_gold[[5, 9, 50]] = True
    positions, weights = _choose(is_gold, 20, np.random.default_rng(0))
    assert positions[:3].tolist() == [5, 9, 50]
    assert len(set(positions.tolist())) == 23
    assert weights.tolist() == [1.0] * 3 + [5.0] * 20
    again, _ = _choose(is_gold, 20, np.random.default_rng(0))
    assert again.tolist() == positions.tolist()
