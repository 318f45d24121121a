from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForPreTraining, BertTokenizerFast

from components.encoders.bag_of_words import BagOfWords, FeatureSettings, save_bag_of_words
from components.encoders.contextual import load_contextual
from components.encoders.recurrent import RecurrentEncoder, RecurrentSettings, load_recurrent, save_recurrent
from components.encoders.static import save_word_vectors
from components.encoders.transformer import load_transformer
from components.encoders.wordpiece import save_wordpiece
from components.text.segmentation import Segmenter, SegmenterConfig
from components.text.vocabulary import Vocabulary

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "我", "吃", "苹", "果", "春", "天", "Ａ"]
CHARACTERS = SegmenterConfig(segmenter="characters")


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch):
    monkeypatch.setattr("components.encoders.contextual_networks.choose_device", lambda: torch.device("cpu"))


def bert(folder):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=12, pad_token_id=0,
    )  # fmt: skip
    BertForPreTraining(config).save_pretrained(folder)
    save_wordpiece(BertTokenizerFast(vocab={piece: number for number, piece in enumerate(PIECES)}), folder)
    (folder / "encoder.json").write_text('{"family": "bert"}')
    return folder


def recurrent(folder, num_layers=2, bidirectional=True):
    torch.manual_seed(1)
    settings = RecurrentSettings(
        cell="lstm", bidirectional=bidirectional, hidden_size=5, embedding_size=4, num_layers=num_layers
    )
    save_recurrent(RecurrentEncoder(settings, Vocabulary(list("我吃苹果春天")), Segmenter(CHARACTERS)), folder)
    return folder


def word2vec(folder, config=None):
    source = folder / "source"
    source.mkdir()
    Segmenter(config or SegmenterConfig()).save(source)
    vectors = np.array([[1, 0], [0, 1], [4, 0], [0, 2]], dtype=np.float32)
    save_word_vectors(
        folder, ["苹果", "我", "天", "气"], vectors, units="words", oov_policy="characters", source=source
    )
    return folder


def bag(folder, features, *, analyzer="word"):
    settings = FeatureSettings("one_hot", analyzer, (1, 1), (1, 1), False, True)
    save_bag_of_words(BagOfWords(features, None, settings, Segmenter(SegmenterConfig())), folder)
    return folder


def test_word_vectors_know_a_word_its_parts_or_nothing(tmp_path):
    encoder = load_contextual(word2vec(tmp_path))
    (vectors,) = encoder.word_vectors(["苹果", "天气", "龘"])
    assert vectors[:2].tolist() == [[1, 0], [2, 1]]
    assert np.isnan(vectors[2]).all()
    assert encoder.coverage(["苹果", "天气", "龘"]) == ["whole", "parts", "unknown"]
    assert encoder.table_rows(["天", "天气", "龘"]) == [2, None, None]
    assert encoder.table.words == ("苹果", "我", "天", "气")


def test_a_span_is_the_mean_of_the_tokens_that_overlap_it(tmp_path):
    encoder = load_contextual(word2vec(tmp_path))
    (vectors,) = encoder.span_vectors(["我\u200b吃苹果", "我吃苹果", "我吃"], [(3, 4), (0, 4), (1, 2)])
    assert vectors[:2].tolist() == [[1, 0], [0.5, 0.5]]  # 吃 is unknown; a zero-width space does not move the span.
    assert np.isnan(vectors[2]).all()


def test_bert_states_are_those_of_the_model(tmp_path):
    encoder = load_contextual(bert(tmp_path))
    assert (encoder.family, encoder.layers) == ("bert", ("embeddings", "layer_1", "layer_2"))
    embedded, first, second = encoder.span_vectors(["我吃苹果"], [(2, 4)])
    model = load_transformer(tmp_path).model
    with torch.no_grad():
        states = model(torch.tensor([[2, 5, 6, 7, 8, 3]]), output_hidden_states=True).hidden_states
    expected = [model.embeddings.word_embeddings.weight[7:9].mean(0), *(state[0, 3:5].mean(0) for state in states[1:])]
    for found, wanted in zip((embedded, first, second), expected, strict=True):
        np.testing.assert_allclose(found[0], wanted.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_states_are_those_of_the_encoder(tmp_path, bidirectional):
    encoder = load_contextual(recurrent(tmp_path, bidirectional=bidirectional))
    assert encoder.layers == ("embeddings", "layer_1", "layer_2")
    embedded, _, last = encoder.span_vectors(["我吃苹果", "我吃"], [(2, 4), (1, 2)])
    network = load_recurrent(tmp_path)
    with torch.no_grad():
        hidden = network(torch.tensor([network.encode("我吃苹果")]), torch.tensor([4])).hidden_BLH
    np.testing.assert_allclose(last[0], hidden[0, 2:].mean(0).numpy(), atol=1e-6)
    np.testing.assert_allclose(embedded[0], network.embedding.weight[4:6].mean(0).detach().numpy(), atol=1e-7)


def test_the_first_of_two_recurrent_layers_is_an_encoder_of_one_layer(tmp_path):
    encoder = load_contextual(recurrent(tmp_path))
    network = load_recurrent(tmp_path)
    forward = torch.nn.LSTM(4, 5, batch_first=True)
    forward.load_state_dict({name: value for name, value in network.stacks[0].state_dict().items() if "l0" in name})
    with torch.no_grad():
        states = forward(network.embedding(torch.tensor([network.encode("我吃")])))[0]
    np.testing.assert_allclose(encoder.span_vectors(["我吃"], [(1, 2)])[1][0, :5], states[0, 1].numpy(), atol=1e-6)


@pytest.mark.parametrize("make", [bert, recurrent])
def test_only_layer_0_is_the_same_in_every_sentence(tmp_path, make):
    encoder = load_contextual(make(tmp_path))
    layers = encoder.span_vectors(["我吃苹果", "苹果春天"], [(2, 4), (0, 2)])
    assert np.array_equal(layers[0][0], layers[0][1])
    assert all(np.abs(layer[0] - layer[1]).max() > 1e-4 for layer in layers[1:])


@pytest.mark.parametrize("make", [bert, recurrent])
def test_companions_in_the_batch_change_nothing(tmp_path, make):
    encoder = load_contextual(make(tmp_path))
    texts, spans = ["苹果", "我吃苹果", "春天我吃苹果"], [(0, 2), (2, 4), (4, 6)]
    together = encoder.span_vectors(texts, spans, batch_size=3)
    alone = encoder.span_vectors(texts, spans, batch_size=1)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_text_longer_than_the_positions_is_read_around_the_span(tmp_path):
    encoder = load_contextual(bert(tmp_path))
    assert encoder.max_tokens == 10
    text = "我吃" * 20 + "苹果" + "春天" * 20
    long = encoder.span_vectors([text], [(40, 42)])
    window = encoder.span_vectors([text[36:46]], [(4, 6)])
    assert all(np.array_equal(one, other) for one, other in zip(long, window, strict=True))
    assert all(np.isfinite(layer).all() for layer in encoder.span_vectors([text], [(81, 82)]))


def test_bert_unknown_characters_have_no_static_vector_but_a_state(tmp_path):
    encoder = load_contextual(bert(tmp_path))
    layers = encoder.span_vectors(["我吃龘"], [(2, 3)])
    assert np.isnan(layers[0]).all()
    assert np.isfinite(layers[1]).all()
    assert encoder.coverage(["我", "苹果", "龘"]) == ["whole", "parts", "unknown"]
    assert not {"[CLS]", "[UNK]"} & set(encoder.table.words)


def test_a_bag_of_words_is_one_hot_whatever_the_sentence(tmp_path):
    encoder = load_contextual(bag(tmp_path, ("我", "苹果", "香蕉")))
    (vectors,) = encoder.span_vectors(["我吃苹果", "苹果好", "香蕉", "龘"], [(2, 4), (0, 2), (0, 2), (0, 1)])
    products = vectors[:3] @ vectors[:3].T
    assert products.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert np.isnan(vectors[3]).all()
    assert encoder.table is None
    assert encoder.coverage(["苹果", "龘"]) == ["whole", "unknown"]


def test_bytes_are_the_same_twice(tmp_path):
    folder = recurrent(tmp_path)
    first, second = (load_contextual(folder).span_vectors(["我吃苹果"] * 2, [(2, 4), (0, 1)]) for _ in range(2))
    assert all(one.tobytes() == other.tobytes() for one, other in zip(first, second, strict=True))
