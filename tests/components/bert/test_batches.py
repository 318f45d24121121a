"""Batches and the loss on them: pre-01, pre-05, train-06, agreement with transformers' own loss."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from components.bert.batches import PackedData
from components.bert.data import starts_of_words, tokenize_corpus
from components.bert.initial import build_model
from components.bert.model import pretraining_loss, share_of_loss
from components.encoders.wordpiece import load_wordpiece, piece_ids
from components.errors import InputError
from components.formats import IGNORE_INDEX, Document, ShardWriter, read_documents

ROOT = Path(__file__).parents[3]
CPU = torch.device("cpu")
LENGTH = 48


@pytest.fixture(scope="module")
def tokenizer(bert_inputs):
    return load_wordpiece(bert_inputs.tokenizer)


@pytest.fixture
def make_data(bert_inputs, tokenizer, tmp_path):
    def make(segmented=False, **settings):
        corpus = tokenize_corpus(
            bert_inputs.corpus, "train", tokenizer, tmp_path, bert_inputs.segmented if segmented else None
        )
        values = {
            "max_seq_length": LENGTH,
            "short_seq_probability": 0.3,
            "nsp": True,
            "mlm_probability": 0.15,
            "batch_size": 6,
            "seed": 0,
            **settings,
        }
        return corpus, PackedData(corpus, piece_ids(tokenizer), **values)

    return make


@pytest.fixture
def model(tokenizer):
    return build_model(
        vocab_size=len(tokenizer),
        max_seq_length=LENGTH,
        pad_token_id=0,
        position_embeddings="learned",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        sizes={"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64},
        seed=0,
    ).eval()


def unpack(batch):
    """One row per instance, padded at its end: the plain layout of BERT."""
    number = int(batch.instances.max()) + 1
    plain = {
        "input_ids": np.zeros((number, LENGTH), np.int64),
        "token_type_ids": np.zeros((number, LENGTH), np.int64),
        "attention_mask": np.zeros((number, LENGTH), np.int64),
        "labels": np.full((number, LENGTH), IGNORE_INDEX),
    }
    for instance in range(number):
        where = batch.instances == instance
        length = where.sum()
        plain["input_ids"][instance, :length] = batch.input_ids[where]
        plain["token_type_ids"][instance, :length] = batch.token_type_ids[where]
        plain["labels"][instance, :length] = batch.labels[where]
        plain["attention_mask"][instance, :length] = 1
    plain["next_sentence_label"] = batch.next_sentence_labels
    return {name: torch.from_numpy(array) for name, array in plain.items()}


def test_corpus_is_encoded_once_and_whole(bert_inputs, tokenizer, make_data):
    corpus, _ = make_data()
    documents = list(read_documents(bert_inputs.corpus, "train"))
    assert corpus.document_ids == tuple(document.id for document in documents)
    for number in (0, 57, 119):
        first, last = corpus.document_starts[number : number + 2]
        for sentence, place in zip(documents[number].sentences, range(first, last), strict=True):
            start, end = corpus.sentence_starts[place : place + 2]
            assert corpus.ids[start:end].tolist() == tokenizer(sentence, add_special_tokens=False)["input_ids"]
    assert isinstance(corpus.ids, np.memmap)


def test_empty_sentences_are_counted_and_documents_without_pieces_left_out(tmp_path, tokenizer):
    writer = ShardWriter(tmp_path, "train")
    for number, sentences in enumerate([("春天。", " ", "好看。"), ("\u3000",), ("春",)]):
        writer.write(Document(f"a:{number}", sentences))
    writer.close()
    corpus = tokenize_corpus(tmp_path, "train", tokenizer, tmp_path)
    assert corpus.document_ids == ("a:0", "a:2")
    assert corpus.num_empty_sentences == 2
    assert np.diff(corpus.document_starts).tolist() == [2, 1]
    with pytest.raises(InputError, match="no validation text"):
        tokenize_corpus(tmp_path, "validation", tokenizer, tmp_path)


def test_layout_of_a_batch(make_data, tokenizer):
    corpus, data = make_data()
    batch, pieces = data.batch_at(3), piece_ids(tokenizer)
    original = np.where(batch.labels == IGNORE_INDEX, batch.input_ids, batch.labels)
    assert batch.instances.max() + 1 > 6
    for instance, start in enumerate(batch.cls_positions.tolist()):
        where = batch.instances == instance
        ids, types = original[where].tolist(), batch.token_type_ids[where].tolist()
        assert np.flatnonzero(where.ravel())[0] == start
        assert batch.position_ids[where].tolist() == list(range(len(ids)))
        middle = ids.index(pieces.sep)
        assert (ids[0], ids[-1]) == (pieces.cls, pieces.sep)
        if batch.next_sentence_labels[instance] == IGNORE_INDEX:
            assert middle == len(ids) - 1
        # pre-10: segment B and its [SEP] are 1, everything before is 0.
        assert types == [0] * (middle + 1) + [1] * (len(ids) - middle - 1)
        assert ids.count(pieces.cls) == 1
    padding = batch.instances < 0
    assert (batch.input_ids[padding] == pieces.pad).all()
    assert (batch.labels[padding] == IGNORE_INDEX).all()
    assert (original[~padding] != pieces.pad).all()
    assert (
        batch.num_maskable == batch.num_tokens - 2 * len(batch.cls_positions) - (batch.next_sentence_labels >= 0).sum()
    )
    assert set(batch.documents) <= set(corpus.document_ids)


def test_pre_05_loss_equals_transformers_on_unpacked_padded_rows(make_data, model):
    _, data = make_data()
    batch = data.batch_at(0)
    plain = unpack(batch)
    labelled = plain["next_sentence_label"] != IGNORE_INDEX
    assert 0 < int(labelled.sum()) < len(labelled)
    found = pretraining_loss(model, batch, CPU)
    # transformers averages MLM over all pieces and NSP over all labels: its own forward pass is the reference.
    expected = model(**plain).loss
    ours = found.mlm_sum / found.num_masked + found.nsp_sum / found.num_pairs
    assert ours.item() == pytest.approx(expected.item(), abs=2e-6)
    reference = torch.autograd.grad(expected, list(model.parameters()))
    gradients = torch.autograd.grad(ours, list(model.parameters()))
    for one, other in zip(gradients, reference, strict=True):
        assert torch.allclose(one, other, atol=3e-6)


def test_pre_05_padding_and_neighbours_change_nothing(make_data, model):
    """Hidden states in a packed row equal those of the instance alone, and companions can be anything."""
    _, data = make_data()
    batch = data.batch_at(0)
    shuffled = batch.input_ids.copy()
    target = int(np.argmax(np.bincount(np.repeat(np.arange(6), LENGTH)[batch.cls_positions], minlength=6)))
    first, second = (np.flatnonzero(batch.instances[target] >= 0)[[0, -1]]).tolist()
    instance = int(batch.instances[target, first])
    other = batch.instances[target] != instance
    assert batch.instances[target, second] != instance
    shuffled[target, other] = 7
    changed = dataclasses.replace(batch, input_ids=shuffled)

    def hidden(some):
        with torch.no_grad():
            return model.bert(
                input_ids=torch.from_numpy(some.input_ids),
                token_type_ids=torch.from_numpy(some.token_type_ids),
                position_ids=torch.from_numpy(some.position_ids),
                attention_mask=torch.from_numpy(some.attention_mask),
            ).last_hidden_state[target]

    before, after = hidden(batch), hidden(changed)
    assert torch.equal(before[~other], after[~other])
    assert not torch.equal(before[other], after[other])


def test_batches_are_a_function_of_seed_and_step(make_data):
    _, data = make_data()
    later = data.num_steps_per_epoch + 1
    kept = [data.batch_at(step) for step in (later, 2, 0)]
    _, again = make_data()
    for step, batch in zip((later, 2, 0), kept, strict=True):
        other = again.batch_at(step)
        assert (batch.input_ids == other.input_ids).all()
        assert (batch.labels == other.labels).all()
    _, other_seed = make_data(seed=1)
    assert (other_seed.batch_at(0).input_ids != kept[2].input_ids).any()


def test_an_epoch_visits_every_row_once(make_data):
    _, data = make_data(batch_size=1)
    epoch = data.epoch
    rows = [tuple(data.batch_at(step).instances[0].tolist()) for step in range(data.num_steps_per_epoch)]
    assert len(rows) == epoch.packed.num_rows == len(set(epoch.order.tolist()))
    assert sum(data.batch_at(step).num_tokens for step in range(len(rows))) == epoch.pairs.lengths.sum()
    assert epoch.padding_share(LENGTH) < 0.03


def test_train_06_accumulated_gradients_equal_the_full_batch(make_data, model):
    _, data = make_data(batch_size=8)
    batch = data.batch_at(0)
    masked_per_row = (batch.labels != IGNORE_INDEX).sum(axis=1)
    assert len(set(masked_per_row.tolist())) > 2

    def gradients(rows):
        model.zero_grad()
        metrics = []
        for start in range(0, 8, rows):
            share = share_of_loss(model, batch.rows(start, start + rows), whole=batch, nsp=True, device=CPU)
            share.loss.backward()
            metrics.append({"loss": share.loss.item(), **{k: float(v) for k, v in share.metrics.items()}})
        totals = {name: sum(entry[name] for entry in metrics) for name in metrics[0]}
        return [parameter.grad.clone() for parameter in model.parameters()], totals

    (full, full_metrics), (small, small_metrics) = gradients(8), gradients(1)
    for one, other in zip(full, small, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    assert small_metrics == pytest.approx(full_metrics, abs=1e-5)


def test_whole_words_follow_the_segmenter(bert_inputs, make_data, tokenizer):
    corpus, data = make_data(segmented=True, mlm_probability=0.3)
    # nlp2000 is several pieces or one, 春天 is two characters: pieces of one word share their fate.
    text = "春天 来nlp2000了"
    encoding = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
    marks = starts_of_words(text, ("春天", "来", "nlp2000", "了"), encoding.offsets, "a:1")
    words = [text[start:end] for (start, end), mark in zip(encoding.offsets, marks, strict=True) if mark]
    assert [word[0] for word in words] == ["春", "来", "n", "了"]
    assert not marks[1]
    assert 0.3 < corpus.starts_word.mean() < 0.9
    chosen = total = 0
    together: list[bool] = []
    for step in range(20):
        batch = data.batch_at(step)
        chosen += (batch.labels != IGNORE_INDEX).sum()
        total += batch.num_maskable
        halves = [tokenizer.convert_tokens_to_ids(character) for character in "春天"]
        original = np.where(batch.labels == IGNORE_INDEX, batch.input_ids, batch.labels)
        first, second = (original[:, :-1] == halves[0]), (original[:, 1:] == halves[1])
        rows, columns = np.nonzero(first & second)
        fate = batch.labels != IGNORE_INDEX
        together += (fate[rows, columns] == fate[rows, columns + 1]).tolist()
    assert len(together) > 100
    # Only a word cut at the end of an instance may part; its halves never meet in one row then.
    assert all(together)
    assert chosen / total == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize(
    "words, message",
    [(("春天", "走"), "word '走' does not continue '春天'"), (("春天",), "words end before '来了'")],
)
def test_words_that_do_not_spell_the_sentence_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        starts_of_words("春天来了", words, [(0, 1)], "a:1")


MEASURE = """
import resource, sys, tempfile
from pathlib import Path
from components.bert.batches import PackedData
from components.bert.data import tokenize_corpus
from components.encoders.wordpiece import load_wordpiece, piece_ids
tokenizer = load_wordpiece(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    corpus = tokenize_corpus(Path(sys.argv[1]), "train", tokenizer, Path(folder))
    data = PackedData(corpus, piece_ids(tokenizer), max_seq_length=64, short_seq_probability=0.1, nsp=True,
                      mlm_probability=0.15, batch_size=32, seed=0)
    for step in range(50):
        data.batch_at(step)
    print(len(corpus.ids), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_pre_01_memory_does_not_grow_with_the_corpus(bert_inputs, tmp_path):
    documents = list(read_documents(bert_inputs.corpus, "train"))
    measured = []
    for times in (3, 30):
        folder = tmp_path / str(times)
        folder.mkdir()
        writer = ShardWriter(folder, "train")
        for number in range(times):
            for document in documents:
                writer.write(Document(f"{document.id}-{number}", document.sentences))
        writer.close()
        command = [sys.executable, "-c", MEASURE, str(folder), str(bert_inputs.tokenizer)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        measured.append([int(value) for value in done.stdout.split()])
    (few, small), (many, large) = measured
    assert many == 10 * few
    assert large <= 1.2 * small
