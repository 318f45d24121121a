from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

from components.artifacts import hash_folder
from components.encoders.recurrent import RecurrentEncoder, RecurrentSettings, load_recurrent
from components.encoders.static import save_word_vectors
from components.errors import ConfigError, InputError
from components.formats import SegmentedDocument, ShardWriter, write_jsonl
from components.rnn import pretraining
from components.rnn.config import RecurrentConfig
from components.rnn.data import WordIds, window_numbers, write_word_ids
from components.rnn.model import LanguageModel, sampled_softmax_loss, zipf_log_probabilities
from components.rnn.stage import train_recurrent
from components.text.segmentation import Segmenter, SegmenterConfig
from components.text.vocabulary import Vocabulary

CHARACTERS = SegmenterConfig(segmenter="characters")
WORDS = [chr(0x4E00 + number) for number in range(12)]
SMALL = {"hidden_size": 16, "embedding_size": 8, "min_count": 1}
LANGUAGE_MODEL = {
    **SMALL, "objective": "language_model", "num_train_steps": 30, "batch_size": 8, "max_seq_length": 6,
    "learning_rate": 0.03, "warmup_steps": 2, "num_sampled": 0,
}  # fmt: skip


def cycle(length, start=0):
    """Words that always follow one another: a corpus that a language model learns completely."""
    return tuple(WORDS[(start + n) % len(WORDS)] for n in range(length))


def write_segmented(folder, documents, validation=(), config=CHARACTERS):
    folder.mkdir()
    for split, texts in (("train", documents), ("validation", validation)):
        writer = ShardWriter(folder, split, shard_documents=2)
        for number, words in enumerate(texts):
            writer.write(SegmentedDocument(f"text.txt:{number}", (tuple(words),)))
        writer.close()
    Segmenter(config).save(folder)
    return folder


@pytest.fixture
def segmented(tmp_path):
    documents = [cycle(60, start) for start in range(5)]
    return write_segmented(tmp_path / "segmented", documents, [cycle(50, 3)])


def train(segmented, out_dir, settings, **inputs):
    out_dir.mkdir()
    return train_recurrent(RecurrentConfig(**settings), segmented=segmented, out_dir=out_dir, **inputs)


# --- initialisation and vocabulary -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_random_encoder(segmented, tmp_path, cell):
    metrics = train(segmented, tmp_path / "out", {**SMALL, "cell": cell, "bidirectional": False, "num_layers": 2})
    encoder = load_recurrent(tmp_path / "out")
    assert encoder.settings == RecurrentSettings(cell, False, 16, 2, 8, 0.0)
    assert encoder.vocabulary.words[2:] == tuple(sorted(WORDS))
    assert metrics["vocab_size"] == 14
    assert metrics["num_words"] == 300
    assert metrics["num_parameters"] == encoder.num_parameters
    assert all(np.isfinite(list(metrics.values())))


def test_same_seed_same_bytes_and_another_seed_other_weights(segmented, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(segmented, tmp_path / name, {**SMALL, "seed": seed})
    assert hash_folder(tmp_path / "a") == hash_folder(tmp_path / "b")
    changed = {
        name for name, entry in hash_folder(tmp_path / "a").items() if entry != hash_folder(tmp_path / "c")[name]
    }
    assert changed == {"model.safetensors"}


def test_vocabulary_limits_are_counted(tmp_path):
    segmented = write_segmented(tmp_path / "segmented", ["甲甲甲乙乙丙", "乙甲丁"])
    metrics = train(segmented, tmp_path / "few", {**SMALL, "min_count": 2})
    assert load_recurrent(tmp_path / "few").vocabulary.words[2:] == ("甲", "乙")
    assert metrics["oov_rate_train"] == pytest.approx(2 / 9)
    train(segmented, tmp_path / "one", {**SMALL, "max_vocab_size": 3})
    assert load_recurrent(tmp_path / "one").vocabulary.words[2:] == ("甲",)


def test_empty_vocabulary_is_refused_with_the_highest_count(segmented, tmp_path):
    with pytest.raises(InputError, match="train_recurrent: min_count=26 keeps 0 of 12 types; the highest count is 25"):
        train(segmented, tmp_path / "out", {**SMALL, "min_count": 26})


def test_unsegmented_corpus_is_refused(tmp_path):
    segmented = write_segmented(tmp_path / "segmented", [])
    with pytest.raises(InputError, match="no train"):
        train(segmented, tmp_path / "none", SMALL)
    write_jsonl(segmented / "train-00000.jsonl", [{"id": "a:1", "sentences": ["我爱你"]}])
    with pytest.raises(InputError, match=r"train-00000.jsonl:1: sentence '我爱你' is not a list of words"):
        train(segmented, tmp_path / "out", SMALL)


# --- word vectors ----------------------------------------------------------------------------------------------------


def make_vectors(folder, words, size=8, units="words", config=CHARACTERS):
    source = folder.with_name(f"{folder.name}-source")
    for path in (folder, source):
        path.mkdir()
    Segmenter(config).save(source)
    vectors = np.random.default_rng(0).normal(size=(len(words), size)).astype(np.float32)
    save_word_vectors(folder, words, vectors, units=units, oov_policy="skip", source=source)
    return vectors


def test_embeddings_start_from_word_vectors(segmented, tmp_path):
    vectors = make_vectors(tmp_path / "vectors", ["新", *WORDS[:4]])
    metrics = train(segmented, tmp_path / "out", SMALL, embeddings=tmp_path / "vectors")
    encoder = load_recurrent(tmp_path / "out")
    assert encoder.vocabulary.words[2:] == ("新", *WORDS[:4])
    weight = encoder.embedding.weight.detach().numpy()
    assert np.array_equal(weight[2:], vectors)
    assert np.allclose(weight[1], vectors.mean(axis=0))
    assert (weight[0] == 0).all()
    assert metrics["num_matched_vectors"] == 5
    assert metrics["num_random_embeddings"] == 0
    assert metrics["oov_rate_train"] == pytest.approx(8 / 12)


def test_vectors_beyond_the_vocabulary_limit_are_counted(segmented, tmp_path):
    make_vectors(tmp_path / "vectors", WORDS)
    metrics = train(segmented, tmp_path / "out", {**SMALL, "max_vocab_size": 6}, embeddings=tmp_path / "vectors")
    assert (metrics["num_matched_vectors"], metrics["num_unused_vectors"]) == (4, 8)


def test_vectors_that_do_not_fit_are_refused(segmented, tmp_path):
    make_vectors(tmp_path / "large", WORDS, size=9)
    with pytest.raises(ConfigError, match=r"embedding_size is 8, but the vectors .* have vector_size 9"):
        train(segmented, tmp_path / "a", SMALL, embeddings=tmp_path / "large")
    make_vectors(tmp_path / "other", WORDS, config=SegmenterConfig(language="en"))
    with pytest.raises(ConfigError, match="different segmenters"):
        train(segmented, tmp_path / "b", SMALL, embeddings=tmp_path / "other")


def test_vectors_of_pieces_are_refused(segmented, tmp_path, monkeypatch):
    from components.encoders.static import WordVectors
    from components.rnn import stage

    pieces = WordVectors(("我",), np.ones((1, 8), dtype=np.float32), list, units="pieces")
    monkeypatch.setattr(stage, "load_word_vectors", lambda folder: pieces)
    with pytest.raises(ConfigError, match="needs units='words'"):
        train(segmented, tmp_path / "out", SMALL, embeddings=tmp_path)


# --- windows ---------------------------------------------------------------------------------------------------------


def test_word_ids_hold_every_word_in_order(segmented, tmp_path):
    vocabulary = Vocabulary(WORDS[:10])
    ids = write_word_ids(segmented, "train", vocabulary, tmp_path / "ids.bin")
    expected = [id_ for start in range(5) for id_ in vocabulary.encode(cycle(60, start))]
    assert ids.ids.tolist() == expected
    assert ids.num_unknown == expected.count(1) == 50
    assert ids.num_windows(7) == 42
    assert ids.windows(np.array([2, 0]), 7).tolist() == [expected[14:21], expected[:7]]


def test_an_empty_split_has_no_windows(segmented, tmp_path):
    ids = write_word_ids(segmented, "test", Vocabulary(WORDS), tmp_path / "ids.bin")
    assert ids.num_windows(2) == 0


@pytest.mark.parametrize(("batch_size", "num_windows"), [(4, 10), (8, 3), (5, 5), (3, 1)])
def test_every_epoch_sees_every_window_once(batch_size, num_windows):
    steps = [window_numbers(step, batch_size, num_windows, seed=1) for step in range(3 * num_windows)]
    stream = np.concatenate(steps)
    for epoch in range(len(stream) // num_windows):
        assert sorted(stream[epoch * num_windows : (epoch + 1) * num_windows]) == list(range(num_windows))
    assert np.array_equal(window_numbers(2, batch_size, num_windows, seed=1), steps[2])


def test_window_order_depends_on_seed_and_epoch():
    first, second, other = (
        window_numbers(step, 50, 50, seed).tolist() for step, seed in ((0, 1), (1, 1), (0, 2))
    )  # fmt: skip
    assert first != second
    assert first != other


# --- language model --------------------------------------------------------------------------------------------------


def make_model(*, bidirectional=True, tie_weights=True, num_layers=1, cell="lstm", vocab=WORDS):
    torch.manual_seed(3)
    shape = RecurrentSettings(cell, bidirectional, 16, num_layers, 8, 0.0)
    return LanguageModel(RecurrentEncoder(shape, Vocabulary(vocab), Segmenter(CHARACTERS)), tie_weights=tie_weights)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_no_direction_sees_the_word_it_predicts(num_layers):
    model = make_model(num_layers=num_layers)
    ids = torch.randint(2, 14, (1, 7))
    changed = ids.clone()
    changed[0, 4] = 2 + (changed[0, 4] - 1) % 12
    states = [model.encoder(batch, torch.tensor([7])).hidden_BLH[0].detach() for batch in (ids, changed)]
    # The state at word 3 predicts word 4 forward; the state at word 5 predicts word 4 backward.
    assert torch.equal(states[0][:4, :16], states[1][:4, :16])
    torch.testing.assert_close(states[0][5:, 16:], states[1][5:, 16:], atol=1e-6, rtol=0)
    assert not torch.equal(states[0][4:, :16], states[1][4:, :16])


def test_full_softmax_loss_by_definition():
    model = make_model()
    ids = torch.randint(2, 14, (3, 5))
    hidden = model.encoder(ids, torch.tensor([5, 5, 5])).hidden_BLH
    total = 0.0
    for row in range(3):
        for place in range(4):
            for direction, context, target in ((0, place, place + 1), (1, place + 1, place)):
                state = hidden[row, context, 16 * direction : 16 * (direction + 1)]
                logits = model.encoder.embedding.weight @ model.projections[direction](state) + model.output_bias_V
                total -= torch.log_softmax(logits, dim=0)[ids[row, target]]
    assert model(ids).item() == pytest.approx(total.item() / (3 * 4 * 2), abs=1e-5)


def test_untied_weights_are_parameters_of_their_own():
    tied, own = make_model(), make_model(tie_weights=False)
    assert tied.output_VE is tied.encoder.embedding.weight
    assert own.output_VE is not own.encoder.embedding.weight
    count = {name: sum(p.numel() for p in model.parameters()) for name, model in (("tied", tied), ("own", own))}
    assert count["own"] - count["tied"] == 14 * 8


def test_noise_words_are_log_uniform_and_never_padding():
    probabilities = zipf_log_probabilities(14).exp()
    assert probabilities[0] == 0
    assert float(probabilities.sum()) == pytest.approx(1, abs=1e-6)
    torch.manual_seed(0)
    drawn = torch.exp(torch.rand(200_000, dtype=torch.float64) * np.log(14)).long().clamp(1, 13)
    shares = torch.bincount(drawn, minlength=14) / len(drawn)
    torch.testing.assert_close(shares.float(), probabilities, atol=5e-3, rtol=0)


def test_sampled_softmax_approaches_the_full_one():
    torch.manual_seed(1)
    context, output, bias = torch.randn(6, 8), torch.randn(14, 8), torch.randn(14)
    bias[0] = -1e9
    targets = torch.tensor([1, 2, 3, 5, 8, 13])
    full = torch.nn.functional.cross_entropy(context @ output.T + bias, targets)
    sampled = torch.stack([sampled_softmax_loss(context, targets, output, bias, 4000) for _ in range(20)]).mean()
    assert float(sampled) == pytest.approx(float(full), abs=0.02)


@pytest.mark.parametrize(
    "settings", [{}, {"num_sampled": 8}, {"tie_weights": False, "cell": "gru"}, {"bidirectional": False}]
)
def test_language_model_learns_a_predictable_corpus(segmented, tmp_path, settings):
    steps = []
    metrics = train(
        segmented, tmp_path / "out", {**LANGUAGE_MODEL, "num_train_steps": 60, **settings},
        log_metrics=lambda metrics, *, step=None: steps.append(dict(metrics)),
    )  # fmt: skip
    assert metrics["val_perplexity"] < 4 < 11 < metrics["unigram_val_perplexity"]
    assert metrics["val_loss"] == pytest.approx(np.log(metrics["val_perplexity"]))
    assert metrics["num_unused_words"] == 300 % 6
    assert ("perplexity" in steps[-1]) == (metrics["num_sampled"] == 0)
    assert steps[-1]["progress"] == 1
    assert all(np.isfinite(list(metrics.values())))


def test_pretraining_changes_the_encoder_and_nothing_else_is_left(segmented, tmp_path):
    train(segmented, tmp_path / "none", SMALL)
    train(segmented, tmp_path / "trained", LANGUAGE_MODEL)
    names = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("none", "trained")]
    assert names[0] == names[1]
    before, after = (load_recurrent(tmp_path / name).state_dict() for name in ("none", "trained"))
    assert all(not torch.equal(before[name], after[name]) for name in before)


def test_language_model_is_reproducible(segmented, tmp_path):
    for name in ("a", "b"):
        train(segmented, tmp_path / name, {**LANGUAGE_MODEL, "dropout": 0.2, "num_sampled": 8})
    assert hash_folder(tmp_path / "a") == hash_folder(tmp_path / "b")


def test_resumed_training_ends_with_the_same_bytes(segmented, tmp_path, monkeypatch):
    settings = {**LANGUAGE_MODEL, "checkpoint_every_steps": 7, "dropout": 0.2, "num_sampled": 8}
    train(segmented, tmp_path / "whole", settings)

    original = pretraining.window_numbers

    def interrupted(step, *arguments):
        if step == 17:
            raise KeyboardInterrupt
        return original(step, *arguments)

    monkeypatch.setattr(pretraining, "window_numbers", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(segmented, tmp_path / "resumed", settings, checkpoint_dir=tmp_path / "checkpoints")
    assert not list((tmp_path / "resumed").iterdir())
    shutil.rmtree(tmp_path / "resumed")
    monkeypatch.setattr(pretraining, "window_numbers", original)
    metrics = train(segmented, tmp_path / "resumed", settings, checkpoint_dir=tmp_path / "checkpoints")
    assert metrics["resumed_from_step"] == 14
    assert hash_folder(tmp_path / "resumed") == hash_folder(tmp_path / "whole")


def test_validation_loss_is_the_mean_over_windows(tmp_path):
    model = make_model().eval()
    ids = WordIds(np.random.default_rng(0).integers(2, 14, size=47).astype(np.int32), 0)
    metrics = pretraining.evaluate_language_model(model, ids, 5, batch_size=4)
    assert metrics["num_val_windows"] == 9
    expected = [model(ids.windows(np.array([number]), 5)).item() for number in range(9)]
    assert metrics["val_loss"] == pytest.approx(np.mean(expected), abs=1e-5)


def test_without_held_out_text_there_is_no_perplexity(tmp_path):
    metrics = train(write_segmented(tmp_path / "segmented", [cycle(60)]), tmp_path / "out", LANGUAGE_MODEL)
    assert not [name for name in metrics if "val" in name]


def test_a_corpus_shorter_than_a_window_is_refused(tmp_path):
    segmented = write_segmented(tmp_path / "segmented", [cycle(5)])
    with pytest.raises(InputError, match="has 5 words, less than one window of max_seq_length=6"):
        train(segmented, tmp_path / "out", LANGUAGE_MODEL)
