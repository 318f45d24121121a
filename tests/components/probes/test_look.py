from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForPreTraining, BertTokenizerFast

from components.artifacts import hash_folder
from components.encoders.bag_of_words import BagOfWords, FeatureSettings, save_bag_of_words
from components.encoders.recurrent import RecurrentEncoder, RecurrentSettings, save_recurrent
from components.encoders.static import save_word_vectors
from components.encoders.transformer import load_transformer
from components.encoders.wordpiece import save_wordpiece
from components.errors import InputError
from components.formats import write_encoder_card
from components.probes.attention import AttentionReader, WordAttention
from components.probes.look_stage import probe_look, shipped_sentences
from components.probes.structure_config import LookProbeConfig, LookSentence
from components.text.segmentation import Segmenter, SegmenterConfig
from components.text.vocabulary import Vocabulary

CHARACTERS = SegmenterConfig(segmenter="characters")
KNOWN = {"zh": list("我去银行取钱然后买苹果。,"), "en": ["she", "walk", "##ed", "to", "the", "bank", "."]}
SENTENCES = {
    "zh": (LookSentence(text="我去银行取钱，然后买苹果。", word="苹果"), LookSentence(text="我去买。", word="买")),
    "en": (LookSentence(text="She walked to the bank.", word="walked"),),
}


def bert(folder, language="zh", max_length=32):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *KNOWN[language]]
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=max_length, initializer_range=0.5,
    )  # fmt: skip
    BertForPreTraining(config).save_pretrained(folder)
    save_wordpiece(BertTokenizerFast(vocab={piece: number for number, piece in enumerate(pieces)}), folder)
    write_encoder_card(folder, "bert")


def recurrent(folder, language="zh", cell="lstm"):
    torch.manual_seed(0)
    settings = RecurrentSettings(cell=cell, hidden_size=6, embedding_size=8, num_layers=2)
    segmenter = Segmenter(CHARACTERS if language == "zh" else SegmenterConfig(language="en"))
    words = KNOWN["zh"] if language == "zh" else ["She", "walked", "to", "the", "bank", "."]
    save_recurrent(RecurrentEncoder(settings, Vocabulary(words), segmenter), folder)


def word2vec(folder, language="zh"):
    source = folder.with_name("source")
    source.mkdir()
    Segmenter(CHARACTERS).save(source)
    vectors = np.ones((13, 4), dtype=np.float32)
    save_word_vectors(folder, KNOWN["zh"], vectors, units="words", oov_policy="skip", source=source)


def bag(folder, language="zh"):
    settings = FeatureSettings("one_hot", "word", (1, 1), (1, 1), False, True)
    save_bag_of_words(BagOfWords(tuple(KNOWN["zh"]), None, settings, Segmenter(CHARACTERS)), folder)


def probe(tmp_path, maker, name="out", language="zh", sentences=None, **settings):
    encoder, out = tmp_path / "encoder", tmp_path / name
    out.mkdir()
    if not encoder.exists():
        encoder.mkdir()
        maker(encoder, language)
    config = LookProbeConfig(language=language, sentences=sentences or SENTENCES[language], **settings)
    metrics = probe_look(config, encoder=encoder, out_dir=out)
    return metrics, json.loads((out / "probe.json").read_text(encoding="utf-8")), out


def test_attention_rows_sum_to_one_and_are_the_models_own(tmp_path):
    bert(tmp_path, "en")
    text = "she walked to the bank."
    found = AttentionReader(tmp_path).read(text, 4, 10)
    assert isinstance(found, WordAttention)
    assert found.tokens == ("[CLS]", "she", "walk", "##ed", "to", "the", "bank", ".", "[SEP]")
    assert found.places == (2, 3)
    assert found.weights.shape == (3, 2, 9)
    np.testing.assert_allclose(found.weights.sum(-1), 1, atol=1e-6)
    loaded = load_transformer(tmp_path)
    loaded.model.set_attn_implementation("eager")
    with torch.no_grad():
        own = loaded.model(**loaded.tokenizer(text, return_tensors="pt"), output_attentions=True).attentions
    np.testing.assert_allclose(found.weights[1, 0], own[1][0, 0, [2, 3]].mean(0).numpy(), atol=1e-7)


def test_the_entropy_of_attention_by_hand():
    weights = np.array([[[0.5, 0.5, 0, 0], [1, 0, 0, 0]], [[0.25] * 4, [0.5, 0.25, 0.25, 0]]])
    entropies = [math.log(2), 0, math.log(4), 1.5 * math.log(2)]
    assert WordAttention(tuple("abcd"), weights, (1,)).entropy == pytest.approx(sum(entropies) / 4)


@pytest.mark.parametrize(
    ("text", "span", "reason"),
    [
        ("我去买", (9, 10), "no_word"),
        ("我去龙", (2, 3), "unknown"),
        ("我" * 40, (0, 1), "too_long"),
    ],
)
def test_why_a_sentence_cannot_be_looked_at(tmp_path, text, span, reason):
    bert(tmp_path)
    assert AttentionReader(tmp_path).read(text, *span) == reason


@pytest.mark.parametrize("language", ["zh", "en"])
def test_attention_is_drawn(tmp_path, language):
    metrics, report, out = probe(tmp_path, bert, language=language)
    number = len(SENTENCES[language])
    assert 0 < metrics["look_attention_entropy"] < math.log(16)
    assert report["headline"] == {"look_attention_entropy": metrics["look_attention_entropy"]}
    assert metrics["look_num_sentences"] == number
    assert [figure["file"] for figure in report["figures"]] == [f"attention_{n}.png" for n in range(1, number + 1)]
    assert all((out / figure["file"]).stat().st_size > 5000 for figure in report["figures"])
    assert all(SENTENCES[language][n].text in figure["caption"] for n, figure in enumerate(report["figures"]))
    # Three layers of two heads, all listed.
    assert len(report["tables"][0]["rows"]) == 6
    assert hash_folder(out) == hash_folder(probe(tmp_path, bert, "again", language)[2])


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(("cell", "gates"), [("lstm", ("forget", "input", "output")), ("gru", ("reset", "update"))])
def test_gates_are_drawn(tmp_path, language, cell, gates):
    metrics, report, out = probe(tmp_path, lambda folder, of: recurrent(folder, of, cell), language=language)
    assert set(report["headline"]) == {f"look_{gate}_gate_mean" for gate in gates}
    assert all(0 < value < 1 for value in report["headline"].values())
    assert metrics["look_gate_state_difference"] < 1e-6
    assert f"{metrics['look_gate_state_difference']:.0e}" in report["sentences"][0]["en"]
    assert all((out / figure["file"]).stat().st_size > 5000 for figure in report["figures"])
    rows = report["tables"][0]["rows"]
    assert [row[0] for row in rows] == (
        list(SENTENCES["zh"][0].text.replace("，", ","))
        if language == "zh"
        else ["She", "walked", "to", "the", "bank", "."]
    )
    # The mean of a metric is the mean of its table, sentence by sentence.
    means = [np.mean([row[1] for row in table["rows"]]) for table in report["tables"][:-1]]
    first = {"lstm": "input", "gru": "reset"}[cell]
    assert metrics[f"look_{first}_gate_mean"] == pytest.approx(np.mean(means), abs=1e-3)


def test_sentences_left_out_are_counted_by_reason(tmp_path):
    sentences = (
        LookSentence(text="我去买。", word="买"), LookSentence(text="我去买龙。", word="龙"),
        LookSentence(text="我\u200b去", word="\u200b"), LookSentence(text="我" * 40, word="我"),
    )  # fmt: skip
    metrics, report, _ = probe(tmp_path, bert, sentences=sentences)
    assert {name: value for name, value in metrics.items() if "num" in name} == {
        "look_num_sentences": 1, "look_num_dropped_no_token": 0, "look_num_dropped_no_word": 1,
        "look_num_dropped_unknown": 1, "look_num_dropped_too_long": 1,
    }  # fmt: skip
    assert [row[1] for row in report["tables"][-1]["rows"]] == [1, 0, 1, 1, 1, 4]


@pytest.mark.parametrize("maker", [bert, recurrent])
def test_an_encoder_of_another_language_gets_no_picture(tmp_path, maker):
    sentences = (LookSentence(text="龙凤呈祥。", word="龙凤"), LookSentence(text="麒麟龟蛇。", word="麒麟"))
    metrics, report, out = probe(tmp_path, maker, sentences=sentences)
    assert (metrics, report["meaningful"], report["figures"]) == ({}, False, [])
    assert report["reason"] == "2 个句子都无法画出（编码器认识得太少: 2）。"
    assert [path.name for path in out.iterdir()] == ["probe.json"]


@pytest.mark.parametrize(
    ("maker", "name"),
    [(bag, "bag_of_words encoder"), (word2vec, "word2vec encoder"),
     (lambda folder, language: recurrent(folder, language, "rnn"), "recurrent encoder of plain cells")],
)  # fmt: skip
def test_an_encoder_with_nothing_to_see_gets_no_picture(tmp_path, maker, name):
    encoder, out = tmp_path / "encoder", tmp_path / "out"
    encoder.mkdir()
    out.mkdir()
    maker(encoder, "zh")
    assert probe_look(LookProbeConfig(language="en"), encoder=encoder, out_dir=out) == {}
    report = json.loads((out / "probe.json").read_text())
    assert report["reason"] == f"This {name} has neither gates nor attention: there is nothing to draw."
    assert (report["meaningful"], report["headline"], report["figures"]) == (False, {}, [])


@pytest.mark.parametrize("maker", [bert, recurrent])
def test_a_sentence_too_long_for_a_picture_is_refused(tmp_path, maker):
    with pytest.raises(InputError, match=r"has \d+ tokens, limit 6"):
        probe(tmp_path, maker, max_seq_length=6)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_sentences_that_ship_have_their_words(language):
    assert len(shipped_sentences(language)) >= 2


def test_a_word_that_does_not_occur_is_refused():
    with pytest.raises(ValueError, match="does not occur"):
        LookSentence(text="abc", word="x")
