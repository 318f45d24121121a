"""Sentence pairs: pre-02, pre-03, pre-04, pre-08, pre-10 and the absence of shortcuts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from components.bert.data import TokenizedCorpus
from components.bert.sentence_pairs import check_documents, check_labels, check_pairs, make_pairs
from components.errors import InputError
from components.formats import IGNORE_INDEX


def corpus_of(*documents):
    """A corpus of documents, each given by the lengths of its sentences; token ids count up from 0."""
    lengths = [length for document in documents for length in document]
    return TokenizedCorpus(
        ids=np.arange(sum(lengths), dtype=np.int32),
        starts_word=None,
        sentence_starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        document_starts=np.concatenate([[0], np.cumsum([len(document) for document in documents])]).astype(np.int64),
        document_ids=tuple(f"text.txt:{number + 1}" for number in range(len(documents))),
        num_empty_sentences=0,
    )


def random_corpus(num_documents=300, seed=0):
    generator = np.random.default_rng(seed)
    return corpus_of(
        *[generator.integers(3, 40, size=generator.integers(2, 12)).tolist() for _ in range(num_documents)]
    )


def pairs_of(corpus, max_seq_length=64, short=0.0, nsp=True, seed=0, epoch=0):
    return make_pairs(
        corpus, max_seq_length=max_seq_length, short_seq_probability=short, nsp=nsp, seed=seed, epoch=epoch
    )


def document_of(corpus, token):
    sentence = np.searchsorted(corpus.sentence_starts, token, side="right") - 1
    return np.searchsorted(corpus.document_starts, sentence, side="right") - 1


def test_two_sentences_that_fit_make_one_pair_or_two_instances():
    corpus = corpus_of([4, 5], [4, 5])
    seen = set()
    for epoch in range(20):
        pairs = pairs_of(corpus, epoch=epoch)
        rows = [(*tuple(span), label) for span, label in zip(pairs.spans.tolist(), pairs.labels.tolist(), strict=True)]
        seen.update(rows)
        if (0, 4, 4, 9, 0) in rows:
            assert rows[1] != (4, 9, 9, 9, IGNORE_INDEX)
        else:
            # The true continuation was not used up: it is an instance of its own.
            assert rows[0][:2] == (0, 4)
            assert rows[0][4] == 1
            assert rows[1] == (4, 9, 9, 9, IGNORE_INDEX)
    # A random B is as long as the true one where the other document has that much.
    assert {row for row in seen if row[0] == 0} == {(0, 4, 4, 9, 0), (0, 4, 9, 14, 1), (0, 4, 13, 18, 1)}


@pytest.mark.parametrize("short", [0.0, 0.3])
def test_pairs_respect_boundaries_and_lose_no_token(short):
    corpus = random_corpus()
    pairs = pairs_of(corpus, short=short)
    boundaries = set(corpus.sentence_starts.tolist())
    used = []
    for (a_start, a_end, b_start, b_end), label in zip(pairs.spans.tolist(), pairs.labels.tolist(), strict=True):
        assert a_start < a_end
        used.append((a_start, b_end if label == 0 else a_end))
        if label == IGNORE_INDEX:
            assert b_start == b_end
            continue
        assert b_start < b_end
        assert a_end in boundaries
        assert b_start in boundaries
        documents = {int(document_of(corpus, token)) for token in (b_start, b_end - 1)}
        assert len(documents) == 1
        assert (documents == {int(document_of(corpus, a_start))}) == (label == 0)
        assert (a_end == b_start) or label == 1
    # A (with the true continuation) covers the text from end to end, each token once.
    assert used[0][0] == 0
    assert used[-1][1] == len(corpus.ids)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(used))


def test_pre_04_no_instance_is_longer_than_the_limit():
    corpus = corpus_of([400, 400], [400, 400], [3, 3])
    for max_seq_length in (8, 33, 128):
        pairs = pairs_of(corpus, max_seq_length)
        assert pairs.lengths.max() == max_seq_length
        assert pairs.num_cut_sentences > 0
        check_pairs(pairs, corpus, max_seq_length=max_seq_length, nsp=False, file="text.txt")
    assert pairs_of(corpus, 2000).num_cut_sentences == 0
    with pytest.raises(InputError, match=r"text\.txt: instance 0: 33 pieces, limit 32"):
        check_pairs(pairs_of(corpus, 33), corpus, max_seq_length=32, nsp=False, file="text.txt")


def test_half_the_pairs_are_random_and_length_tells_nothing():
    corpus = random_corpus(2000)
    pairs = pairs_of(corpus)
    labelled = pairs.labels != IGNORE_INDEX
    assert pairs.labels[labelled].mean() == pytest.approx(0.5, abs=0.02)
    lengths = {label: pairs.lengths[pairs.labels == label].mean() for label in (0, 1)}
    assert lengths[0] == pytest.approx(lengths[1], rel=0.03)
    check_pairs(pairs, corpus, max_seq_length=64, nsp=True, file="text.txt")


def test_without_nsp_there_are_only_single_segments():
    pairs = pairs_of(random_corpus(), nsp=False)
    assert set(pairs.labels.tolist()) == {IGNORE_INDEX}
    check_pairs(pairs, random_corpus(), max_seq_length=64, nsp=False, file="text.txt")


def test_pre_02_pre_08_one_sentence_documents_are_refused():
    corpus = corpus_of(*[[20]] * 500)
    with pytest.raises(InputError, match=r"500 documents, 500 sentences, 1\.0 sentences per document.*nsp: false"):
        check_documents(corpus, file="text.txt")
    mostly = corpus_of(*[[20]] * 500, [5, 5])
    check_documents(mostly, file="text.txt")
    with pytest.raises(InputError, match=r"only \d of 50\d instances can be sentence pairs: 501 documents"):
        check_pairs(pairs_of(mostly), mostly, max_seq_length=64, nsp=True, file="text.txt")


def test_pre_02_a_wrong_share_of_random_pairs_is_refused():
    corpus = random_corpus()
    pairs = pairs_of(corpus)
    pairs.labels[pairs.labels == 0] = 1
    with pytest.raises(InputError, match=r"100% of \d+ pairs are random, expected 40-60 %: 300 documents"):
        check_pairs(pairs, corpus, max_seq_length=64, nsp=True, file="text.txt")


def test_pre_03_one_document_is_refused():
    with pytest.raises(InputError, match=r"text\.txt: NSP needs at least 2 documents, found 1.*nsp: false"):
        check_documents(corpus_of([10] * 50), file="text.txt")


def test_pre_10_a_label_outside_the_range_is_refused_with_its_instance():
    with pytest.raises(InputError, match=r"text\.txt: instance 2: next_sentence_label 2"):
        check_labels(np.array([0, 1, 2, IGNORE_INDEX]), file="text.txt")


def test_pairs_are_a_function_of_seed_and_epoch():
    corpus = random_corpus()
    same = [pairs_of(corpus, seed=1, epoch=2).spans.tolist() for _ in range(2)]
    assert same[0] == same[1]
    assert pairs_of(corpus, seed=1, epoch=3).spans.tolist() != same[0]
    assert pairs_of(corpus, seed=2, epoch=2).spans.tolist() != same[0]
