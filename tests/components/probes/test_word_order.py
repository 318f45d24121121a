from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForPreTraining, BertModel, BertTokenizerFast

from components.artifacts import hash_folder
from components.encoders.bag_of_words import BagOfWords, FeatureSettings, save_bag_of_words
from components.encoders.recurrent import RecurrentEncoder, RecurrentSettings, save_recurrent
from components.encoders.static import save_word_vectors
from components.encoders.wordpiece import save_wordpiece
from components.errors import InputError
from components.formats import write_encoder_card
from components.probes.structure_config import WordOrderProbeConfig
from components.probes.word_order import (
    OrderPair,
    meetings,
    permutation_difference,
    read_order_list,
    split_pairs,
    usable_pairs,
    without_positions,
)
from components.probes.word_order_stage import _Halves, probe_word_order
from components.text.segmentation import Segmenter, SegmenterConfig
from components.text.vocabulary import Vocabulary

CHARACTERS = SegmenterConfig(segmenter="characters")
ORDER = {"first": list("甲乙丙丁"), "second": list("子丑寅卯"), "templates": ["{a}咬{b}。", "看{a}追{b}。"]}
WORDS = list("甲乙丙丁子丑寅卯咬看追。")


def bert(folder, max_length=16, words=WORDS):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=max_length, initializer_range=0.1,
    )  # fmt: skip
    BertForPreTraining(config).save_pretrained(folder)
    save_wordpiece(BertTokenizerFast(vocab={piece: number for number, piece in enumerate(pieces)}), folder)
    write_encoder_card(folder, "bert")


def recurrent(folder, cell="lstm", words=WORDS):
    torch.manual_seed(0)
    settings = RecurrentSettings(cell=cell, bidirectional=False, hidden_size=16, embedding_size=16)
    save_recurrent(RecurrentEncoder(settings, Vocabulary(words), Segmenter(CHARACTERS)), folder)


def word2vec(folder, words=WORDS):
    source = folder.with_name("source")
    source.mkdir(exist_ok=True)
    Segmenter(CHARACTERS).save(source)
    vectors = np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32)
    save_word_vectors(folder, words, vectors, units="words", oov_policy="skip", source=source)


def bag(folder, words=WORDS, analyzer="word", grams=(1, 1)):
    features = (
        sorted({*words, *(f"{one} {two}" for one in "咬追" for two in "甲乙丙丁子丑寅卯")}) if grams[1] > 1 else words
    )
    if analyzer == "word_char":
        features = [f"word:{word}" for word in features]
    settings = FeatureSettings("one_hot", analyzer, grams, (1, 1), False, True)
    save_bag_of_words(BagOfWords(tuple(features), None, settings, Segmenter(CHARACTERS)), folder)


def probe(tmp_path, maker, name="out", order=ORDER, **settings):
    encoder, out, path = tmp_path / "encoder", tmp_path / name, tmp_path / "order.json"
    out.mkdir()
    if not encoder.exists():
        encoder.mkdir()
        maker(encoder)
    path.write_text(json.dumps(order), encoding="utf-8")
    config = WordOrderProbeConfig(order_file=str(path), **settings)
    metrics = probe_word_order(config, encoder=encoder, out_dir=out)
    return metrics, json.loads((out / "probe.json").read_text(encoding="utf-8")), out


def test_the_lists_that_ship_fill_every_template_both_ways():
    for language, number in (("zh", 8 * 8 * 6), ("en", 8 * 8 * 6)):
        pairs = read_order_list(None, language)
        assert len(pairs) == number
        assert all(sorted(pair.straight) == sorted(pair.reversed) != pair.straight for pair in pairs)
    assert read_order_list(None, "zh")[0] == OrderPair("我", "狗", "我咬了狗。", "狗咬了我。")


def test_words_that_look_like_places_are_only_words(tmp_path):
    path = tmp_path / "order.json"
    path.write_text(json.dumps({"first": ["{b}"], "second": ["y"], "templates": ["{a}-{b}"]}))
    assert read_order_list(path, "en") == [OrderPair("{b}", "y", "{b}-y", "y-{b}")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no readable JSON"),
        ("[]", "first is None, not a list of strings"),
        ('{"first": ["a"], "second": [], "templates": ["{a}{b}"]}', "second is"),
        ('{"first": ["a"], "second": ["b"], "templates": ["{a}{a}{b}"]}', "once each"),
    ],
)
def test_a_list_that_cannot_be_used(tmp_path, text, message):
    path = tmp_path / "order.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_order_list(path, "en")


def test_every_pair_is_kept_or_counted():
    pairs = [
        OrderPair("a", "b", "a b", "b a"), OrderPair("a", "u", "a u", "u a"), OrderPair("a", "c", "a c", "ca"),
        OrderPair("a", "d", "a x x d", "d x x a"),
    ]  # fmt: skip
    kept, dropped = usable_pairs(pairs, str.split, lambda pair: pair.second == "u", max_length=3)
    assert kept == pairs[:1]
    assert dropped == {"other_units": 1, "unknown_word": 1, "too_long": 1}


@pytest.mark.parametrize(("share", "tested"), [(0.25, 4), (0.001, 1), (0.999, 15)])
def test_words_that_are_tested_together_never_meet_in_training(share, tested):
    pairs = [OrderPair(a, b, f"{t}{a}{b}", f"{t}{b}{a}") for t in "xyz" for a in "abcd" for b in "ABCD"]
    train, test = split_pairs(pairs, share, seed=0)
    assert len(train) + len(test) == len(pairs)
    assert len(meetings(test)) == tested
    assert not set(meetings(train)) & set(meetings(test))
    assert split_pairs(pairs, share, seed=0) == (train, test)


def test_the_interval_counts_meetings_of_two_words():
    test = [OrderPair(a, "b", t, t) for t in "xyz" for a in "acde"]
    share = _Halves([], test).share(np.array([0, 1] * 9 + [0, 0] * 3))
    assert share.value == pytest.approx(21 / 24)
    # Wilson's interval of 4 right in 4 (round(3.5)) reaches down to 1 / (1 + 1.96² / 4), and up to 1.
    assert share.num_items == 4
    assert share.low == pytest.approx(4 / (4 + 1.959964**2), abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_bert_without_positions_is_equivariant_under_permutations(seed):
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
                        intermediate_size=64, max_position_embeddings=32, initializer_range=0.2)  # fmt: skip
    model = BertModel(config).eval()
    row = torch.randint(50, (2, 20), generator=torch.Generator().manual_seed(seed))
    blind = without_positions(model)
    assert permutation_difference(blind, row, seed) < 1e-5
    assert permutation_difference(model, row, seed) > 0.1
    assert model.embeddings.position_embeddings.weight.abs().max() > 0
    # And in float32, by hand, as the encoder is used.
    order = torch.randperm(20, generator=torch.Generator().manual_seed(seed + 1))
    with torch.no_grad():
        plain, permuted = blind(row).last_hidden_state, blind(row[:, order]).last_hidden_state
    assert float((plain[:, order] - permuted).abs().max()) < 1e-5


def test_bert_solves_the_task_with_positions_and_guesses_without(tmp_path):
    metrics, report, out = probe(tmp_path, bert, num_train_steps=120)
    assert metrics["order_accuracy"] > 0.95
    assert metrics["order_accuracy_without_positions"] == 0.5
    assert metrics["order_permutation_difference_without_positions"] < 1e-5 < metrics["order_permutation_difference"]
    assert "sees the order" in report["sentences"][0]["en"]
    assert "a permuted input gives equal permuted outputs" in report["sentences"][1]["en"]
    assert set(report["headline"]) == {"order_accuracy", "order_accuracy_without_positions"}
    assert (out / report["figures"][0]["file"]).stat().st_size > 5000
    again = probe(tmp_path, bert, "again", num_train_steps=120)[2]
    assert hash_folder(out) == hash_folder(again)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_recurrent_networks_see_the_order(tmp_path, cell):
    metrics, report, _ = probe(tmp_path, lambda folder: recurrent(folder, cell), num_train_steps=80)
    assert set(metrics) == {"order_accuracy"}
    assert metrics["order_accuracy"] > 0.95
    assert report["encoder"] == "recurrent"


@pytest.mark.parametrize("maker", [word2vec, bag, lambda folder: bag(folder, analyzer="word_char")])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_whatever_ignores_order_is_at_chance(tmp_path, maker, language):
    metrics, report, _ = probe(tmp_path, maker, language=language)
    assert metrics == {"order_accuracy": 0.5}
    assert "cannot be told from chance" in report["sentences"][0]["en"]
    assert "与随机猜测无法区分" in report["sentences"][0]["zh"]


def test_a_bag_of_word_pairs_sees_the_order_within_them(tmp_path):
    metrics, _, _ = probe(tmp_path, lambda folder: bag(folder, grams=(1, 2)))
    assert metrics["order_accuracy"] > 0.95


@pytest.mark.parametrize("maker", [bert, recurrent, word2vec, bag])
def test_an_encoder_that_lacks_the_words_gets_no_number(tmp_path, maker):
    metrics, report, out = probe(tmp_path, lambda folder: maker(folder, words=list("甲乙子咬看追。")))
    assert metrics == {}
    assert (report["meaningful"], report["headline"], report["figures"]) == (False, {}, [])
    # Two of the 16 pairs of words are known, in two templates.
    assert "只有 4 个可用（未知词：28）" in report["reason"]
    assert [path.name for path in out.iterdir()] == ["probe.json"]


def test_sentences_beyond_the_encoders_positions_are_counted(tmp_path):
    metrics, report, _ = probe(tmp_path, lambda folder: bert(folder, max_length=6), language="en")
    assert metrics == {}
    assert "16 of 32 pairs" in report["reason"]
    assert "longer than the encoder's positions: 16" in report["reason"]


def test_the_ledger_adds_up(tmp_path):
    _, report, _ = probe(
        tmp_path, lambda folder: word2vec(folder, words=[w for w in WORDS if w != "甲"]), language="en"
    )
    assert [row[1] for row in report["tables"][1]["rows"]] == [24, 0, 8, 0, 32]
