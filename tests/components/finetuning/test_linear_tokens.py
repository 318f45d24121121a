from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from transformers import BertTokenizerFast

from components.bag_of_words.config import BagOfWordsConfig
from components.bag_of_words.stage import fit_bag_of_words
from components.encoders.bag_of_words import load_bag_of_words
from components.encoders.wordpiece import save_wordpiece
from components.errors import ConfigError
from components.examples import TaggedText, write_examples, write_labels, write_task
from components.finetuning.config import NerConfig
from components.finetuning.data import NORMALIZATION_FILE
from components.finetuning.fitting import FittingInputs
from components.finetuning.linear_pieces import (
    CHARACTER_CLASSES,
    NOTHING,
    character_class,
    load_piece_bag,
    piece_ngrams,
)
from components.finetuning.linear_tokens import first_bigram_column, fit_tokens, num_columns, restore_tokens, token_rows
from components.finetuning.tasks import TASKS
from components.formats import write_json
from components.text.normalization import NormalizationConfig

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *"王小明在北京上海大学读书李雷去了广州张伟说他爱南",
    "nlp",
    "1",
    "9",
    "##p",
]
SENTENCES = [
    ("王小明在北京读书", "BIIOBIOO"),
    ("李雷去了上海", "biOOBI"),
    ("他爱南京大学", "OOXYYY"),
    ("张伟在广州", "biOBI"),
    ("王小明爱李雷", "biiObi"),
    ("上海大学在上海", "XYYYOBI"),
    ("他说他爱北京", "OOOOBI"),
    ("张伟说王小明去了南京", "biObiiOOBI"),
]  # fmt: skip
TAGS = {"O": "O", "b": "B-PER", "i": "I-PER", "B": "B-LOC", "I": "I-LOC", "X": "B-ORG", "Y": "I-ORG"}


def tagged(number: int, text: str, codes: str) -> TaggedText:
    codes = codes if number else "biiO" + codes[4:]
    tokens = tuple((index, index + 1) for index in range(len(text)))
    return TaggedText(f"train.txt:{number}", text, tokens, tuple(TAGS[code] for code in codes))


EXAMPLES = [tagged(number, text, codes) for number, (text, codes) in enumerate(SENTENCES)]


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    pieces = list(dict.fromkeys(PIECES))
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    save_wordpiece(BertTokenizerFast(vocab=str(folder / "vocab.txt")), folder)
    return folder


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "dataset"
    folder.mkdir()
    write_task(folder, "ner")
    for split in ("train", "validation", "test"):
        write_examples(folder, split, EXAMPLES)
    write_labels(folder, ["LOC", "ORG", "PER", "TIME"])
    return folder


def fit_encoder(dataset: Path, tokenizer: Path, out: Path, **settings: object) -> Path:
    out.mkdir()
    config = BagOfWordsConfig(units="pieces", **settings)
    fit_bag_of_words(config, dataset=dataset, tokenizer=tokenizer, out_dir=out)
    return out


def fit(dataset: Path, encoder: Path, model_dir: Path, **settings: object):
    model_dir.mkdir()
    config, task = NerConfig(**settings), TASKS["ner"]
    inputs = FittingInputs(encoder, task.read(dataset, config), task, config, model_dir, None, lambda *_, **__: None)
    fitted = fit_tokens(inputs)
    write_json(model_dir / NORMALIZATION_FILE, inputs.data.normalization.model_dump())
    return inputs, fitted


@pytest.mark.parametrize("weighting", ["one_hot", "tfidf"])
def test_overfits_eight_sentences_and_leaves_absent_tags_alone(dataset, tokenizer, tmp_path, weighting) -> None:
    encoder = fit_encoder(dataset, tokenizer, tmp_path / "bag", weighting=weighting)
    inputs, fitted = fit(dataset, encoder, tmp_path / "model")
    score = restore_tokens(tmp_path / "model", inputs.facts, inputs.task, 32)
    assert inputs.validate(score)["entity_f1"] >= 0.95
    outputs = score(EXAMPLES)
    time_columns = [index for index, tag in enumerate(inputs.data.labels) if tag.endswith("TIME")]
    for example, output in zip(EXAMPLES, outputs, strict=True):
        assert output.scores_TK.shape == (len(example.tokens), 9)
        assert np.isfinite(output.scores_TK).all()
        np.testing.assert_allclose(np.exp(output.scores_TK).sum(axis=1), 1.0, atol=1e-12)
        assert (output.scores_TK[:, time_columns] < -50).all()
    assert fitted.metrics["best_C"] in (0.01, 0.1, 1.0, 10.0)
    assert fitted.num_parameters > 0


def test_a_token_without_pieces_has_a_row_and_is_outside(dataset, tokenizer, tmp_path) -> None:
    encoder = fit_encoder(dataset, tokenizer, tmp_path / "bag")
    inputs, _ = fit(dataset, encoder, tmp_path / "model", C=1.0)
    score = restore_tokens(tmp_path / "model", inputs.facts, inputs.task, 32)
    texts = ["\u200b\u200b", "在\u200b北京", ""]
    examples = [TaggedText(str(n), t, tuple((i, i + 1) for i in range(len(t))), ()) for n, t in enumerate(texts)]
    outputs = score(examples)
    assert [len(output.scores_TK) for output in outputs] == [2, 4, 0]
    np.testing.assert_array_equal(outputs[0].scores_TK, np.tile([0.0, *[-np.inf] * 8], (2, 1)))
    assert outputs[1].scores_TK[1].tolist() == [0.0, *[-np.inf] * 8]
    assert np.isfinite(outputs[1].scores_TK[[0, 2, 3]]).all()
    decoded = inputs.task.decode(examples, outputs, inputs.facts)
    assert [len(prediction.tags) for prediction in decoded] == [2, 4, 0]


def test_an_example_does_not_depend_on_its_neighbours(dataset, tokenizer, tmp_path) -> None:
    encoder = fit_encoder(dataset, tokenizer, tmp_path / "bag")
    inputs, _ = fit(dataset, encoder, tmp_path / "model", C=1.0)
    score = restore_tokens(tmp_path / "model", inputs.facts, inputs.task, 32)
    together = score(EXAMPLES)
    for example, output in zip(EXAMPLES, together, strict=True):
        np.testing.assert_array_equal(score([example])[0].scores_TK, output.scores_TK)


def test_restored_in_a_fresh_process_it_gives_the_same_bits(dataset, tokenizer, tmp_path) -> None:
    encoder = fit_encoder(dataset, tokenizer, tmp_path / "bag")
    inputs, _ = fit(dataset, encoder, tmp_path / "model")
    here = restore_tokens(tmp_path / "model", inputs.facts, inputs.task, 32)(EXAMPLES)
    write_json(tmp_path / "facts.json", inputs.facts)
    script = (
        "import sys, numpy as np; from pathlib import Path\n"
        "from components.examples import read_any_examples\n"
        "from components.finetuning.linear_tokens import restore_tokens\n"
        "root = Path(sys.argv[1])\n"
        "score = restore_tokens(root / 'model', {}, None, 32)\n"
        "rows = [o.scores_TK for o in score(read_any_examples(root / 'dataset', 'train'))]\n"
        "np.savez(root / 'there.npz', *rows)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, cwd=Path(__file__).parents[3])
    with np.load(tmp_path / "there.npz") as there:
        for number, output in enumerate(here):
            np.testing.assert_array_equal(there[f"arr_{number}"], output.scores_TK)


def test_features_of_a_token_by_hand(dataset, tokenizer, tmp_path) -> None:
    encoder = fit_encoder(dataset, tokenizer, tmp_path / "bag")
    piece_bag = load_piece_bag(encoder, NormalizationConfig())
    ngrams, bag = piece_bag.ngrams, load_bag_of_words(encoder)
    text = "他爱北"
    rows = token_rows(piece_bag, [TaggedText("0", text, ((0, 1), (1, 2), (2, 3)), ())])
    assert rows.columns_RK.shape == (3, 5 + 4 + 1)
    vocab = piece_bag.encoder.tokenizer.get_vocab()

    def unigram(piece: str) -> int:
        return int(ngrams.unigram_of_V[vocab[piece]])

    border, width = ngrams.num_unigrams - 1, ngrams.num_unigrams
    # 爱: the border two to the left, 他, itself, 北, the border two to the right.
    wanted = [border, unigram("他"), unigram("爱"), unigram("北"), border]
    assert rows.columns_RK[1, :5].tolist() == [offset * width + number for offset, number in enumerate(wanted)]
    idf = dict(zip(bag.features, bag.idf.tolist(), strict=True))
    np.testing.assert_allclose(rows.values_RK[1, :5], [1.0, idf["他"], idf["爱"], idf["北"], 1.0], rtol=1e-6)
    # Pairs: (border, 他) is none; (他, 爱) and (爱, 北) are in the training texts; (北, border) is none.
    start = first_bigram_column(ngrams)
    second, third = rows.columns_RK[1, 6:8]
    assert rows.columns_RK[1, 5] == rows.columns_RK[1, 8] == NOTHING
    assert start + ngrams.num_bigrams <= second < start + 2 * ngrams.num_bigrams <= third
    np.testing.assert_allclose(rows.values_RK[1, 6:8], [idf["他 爱"], idf["爱 北"]], rtol=1e-6)
    assert rows.columns_RK[1, 9] == num_columns(ngrams) - len(CHARACTER_CLASSES) + CHARACTER_CLASSES.index("han")


def test_one_hot_features_weigh_one(dataset, tokenizer, tmp_path) -> None:
    encoder = fit_encoder(dataset, tokenizer, tmp_path / "bag", weighting="one_hot")
    rows = token_rows(load_piece_bag(encoder, NormalizationConfig()), EXAMPLES)
    assert (rows.values_RK == 1.0).all()


def test_a_bag_of_words_over_words_is_refused(dataset, tmp_path) -> None:
    (tmp_path / "bag").mkdir()
    fit_bag_of_words(BagOfWordsConfig(), dataset=dataset, out_dir=tmp_path / "bag")
    with pytest.raises(ConfigError, match="units='pieces'"):
        load_piece_bag(tmp_path / "bag", NormalizationConfig())


def test_pairs_are_found_and_others_are_not(dataset, tokenizer, tmp_path) -> None:
    bag = load_bag_of_words(fit_encoder(dataset, tokenizer, tmp_path / "bag"))
    vocab = bag.segmenter.tokenizer.get_vocab()
    ngrams = piece_ngrams(bag, vocab)
    pairs = [feature.split(" ") for feature in bag.features if " " in feature]
    left, right = (np.array([vocab[pair[side]] for pair in pairs]) for side in (0, 1))
    assert sorted(ngrams.bigrams(ngrams.keys(left, right)).tolist()) == list(range(len(pairs)))
    unseen = ngrams.keys(np.array([vocab["京"], NOTHING]), np.array([vocab["王"], vocab["王"]]))
    assert unseen[1] == NOTHING
    assert ngrams.bigrams(unseen).tolist() == [NOTHING, NOTHING]


@pytest.mark.parametrize(
    "characters, name",
    [
        ("王北", "han"),
        ("三百", "han_numeral"),
        ("7７", "digit"),
        ("AＢ", "capital"),
        ("bé", "latin"),
        ("，.%", "punctuation"),
    ],
)
def test_character_classes(characters: str, name: str) -> None:
    assert {CHARACTER_CLASSES[character_class(character)] for character in characters} == {name}
