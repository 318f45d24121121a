from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, BertTokenizerFast

from components.artifacts import hash_folder
from components.encoders.bag_of_words import BagOfWords, FeatureSettings, save_bag_of_words
from components.encoders.recurrent import RecurrentEncoder, RecurrentSettings, save_recurrent
from components.encoders.static import save_word_vectors
from components.encoders.wordpiece import save_wordpiece
from components.errors import InputError
from components.formats import Document, ShardWriter, write_encoder_card
from components.probes.cloze import (
    Hidden,
    PassagePair,
    Pieces,
    cloze_ranks,
    hide_pieces,
    is_trained,
    pair_passages,
    piece_counts,
    says_next,
)
from components.probes.cloze_stage import probe_cloze
from components.probes.structure_config import ClozeProbeConfig
from components.text.segmentation import Segmenter, SegmenterConfig
from components.text.vocabulary import Vocabulary

UNK, CLS, SEP, MASK = 1, 2, 3, 4
LETTERS = list("甲乙丙丁子丑寅卯咬看追。")
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]
PAIRS = [("甲咬乙。", "甲乙咬。", "order"), ("丙看丁。", "看丙丁。", "order"), ("子追丑。", "子追龙。", "unknown"),
         ("甲。", "甲。", "same"), ("甲" * 40, "乙" * 40, "long")]  # fmt: skip


def network():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32, initializer_range=0.4,
    )  # fmt: skip
    return BertForPreTraining(config).eval()


def trained():
    """A network whose heads' biases have moved, as any training moves them."""
    model = network()
    with torch.no_grad():
        for head in (model.cls.predictions, model.cls.seq_relationship):
            for name, values in head.named_parameters():
                if name.endswith("bias"):
                    values.normal_(std=0.5)
    return model


def bert(folder, model=None, objective="mlm+nsp"):
    (model or trained()).save_pretrained(folder)
    save_wordpiece(BertTokenizerFast(vocab={piece: number for number, piece in enumerate(PIECES)}), folder)
    write_encoder_card(folder, "bert", objective=objective)


def recurrent(folder):
    settings = RecurrentSettings(hidden_size=4, embedding_size=4)
    save_recurrent(RecurrentEncoder(settings, Vocabulary(LETTERS), Segmenter(SegmenterConfig())), folder)


def word2vec(folder):
    source = folder.with_name("source")
    source.mkdir()
    Segmenter(SegmenterConfig()).save(source)
    vectors = np.ones((len(LETTERS), 4), dtype=np.float32)
    save_word_vectors(folder, LETTERS, vectors, units="words", oov_policy="skip", source=source)


def bag(folder):
    settings = FeatureSettings("one_hot", "word", (1, 1), (1, 1), False, True)
    save_bag_of_words(BagOfWords(tuple(LETTERS), None, settings, Segmenter(SegmenterConfig())), folder)


def documents(number, words="甲乙丙丁子丑寅卯"):
    random = np.random.default_rng(0)
    return [
        tuple("".join(random.choice(list(words), 3)) + "。" for _ in range(4 + index % 3)) for index in range(number)
    ]


def write_corpus(folder, train=None, validation=None):
    folder.mkdir(exist_ok=True)
    for split, texts in (("train", train or documents(10)), ("validation", validation or documents(30))):
        writer = ShardWriter(folder, split)
        for number, sentences in enumerate(texts):
            writer.write(Document(f"{split}:{number}", sentences))
        writer.close()
    return folder


def probe(tmp_path, maker=bert, name="out", pairs=PAIRS, corpus=None, **settings):
    encoder, out, path = tmp_path / "encoder", tmp_path / name, tmp_path / "pairs.jsonl"
    out.mkdir()
    if not encoder.exists():
        encoder.mkdir()
        maker(encoder)
    rows = [dict(zip(("sentence_good", "sentence_bad", "phenomenon"), row, strict=True)) for row in pairs]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = ClozeProbeConfig(minimal_pairs_file=str(path), num_resamples=100, **{"num_cloze": 60, **settings})
    metrics = probe_cloze(
        config, encoder=encoder, corpus=write_corpus(tmp_path / "corpus", **corpus or {}), out_dir=out
    )
    return metrics, json.loads((out / "probe.json").read_text(encoding="utf-8")), out


def pieces(*lengths_by_document):
    """Documents whose pieces tell the document (tens) and the sentence (units)."""
    return [
        Pieces(f"d{number}", tuple((100 + 10 * number + place,) * length for place, length in enumerate(lengths)))
        for number, lengths in enumerate(lengths_by_document)
    ]


def test_places_are_hidden_once_and_never_unknown_or_special():
    found = [Pieces("a", ((5, 6, UNK), (7, 8, 9))), Pieces("b", ((10, UNK),)), Pieces("c", ((UNK,),))]
    hidden = hide_pieces(found, 100, length=6, cls=CLS, sep=SEP, unk=UNK, seed=0)
    asked = [item.row[item.place] for item in hidden]
    assert sorted(asked) == [5, 6, 7, 8, 9, 10]
    assert {item.row for item in hidden} == {(CLS, 5, 6, UNK, 7, SEP), (CLS, 8, 9, SEP), (CLS, 10, UNK, SEP)}
    # Three windows have a place to hide: each is asked once before any is asked again.
    first = hide_pieces(found, 3, length=6, cls=CLS, sep=SEP, unk=UNK, seed=0)
    assert len({item.row for item in first}) == 3
    assert first == hidden[:3]
    assert hidden != hide_pieces(found, 100, length=6, cls=CLS, sep=SEP, unk=UNK, seed=1)


def test_pairs_are_half_and_half_and_respect_documents():
    found = pieces(*[(2, 3, 1, 4)] * 6, *[(5, 2, 2)] * 6)
    drawn = pair_passages(found, 20, length=11, seed=0)
    assert Counter(pair.is_next for pair in drawn.pairs) == {True: 10, False: 10}
    for pair in drawn.pairs:
        whole = [piece for sentence in next(d for d in found if d.id == pair.document).sentences for piece in sentence]
        assert 0 < len(pair.first) <= 4
        assert 0 < len(pair.second) <= 4
        # Documents are told by their tens: a foreign passage has none of its own.
        own = {piece // 10 for piece in whole}
        assert ({piece // 10 for piece in pair.second} == own) == pair.is_next
        joined = (*pair.first, *pair.second)
        start = [at for at in range(len(whole)) if tuple(whole[at : at + len(joined)]) == joined]
        assert bool(start) == pair.is_next
    assert drawn.num_boundaries == 6 * 3 + 6 * 2
    assert drawn.num_boundaries == len(drawn.pairs) + drawn.num_without_foreign + drawn.num_not_needed
    assert drawn == pair_passages(found, 20, length=11, seed=0)
    assert drawn != pair_passages(found, 20, length=11, seed=1)


def test_a_boundary_without_a_foreign_passage_of_its_length_is_left_out_and_counted():
    # After its first sentence the first document goes on for 9 pieces; all others together have 4 at most.
    drawn = pair_passages(pieces((1, 9), (2, 2), (2, 2), (2, 2)), 100, length=63, seed=0)
    assert (drawn.num_boundaries, drawn.num_without_foreign, drawn.num_not_needed) == (4, 1, 1)
    assert len(drawn.pairs) == 2
    assert "d0" not in {pair.document for pair in drawn.pairs}
    # Cut to 3 pieces, every boundary has one.
    assert pair_passages(pieces((1, 9), (2, 2), (2, 2), (2, 2)), 100, length=9, seed=0).num_without_foreign == 0
    lonely = pair_passages(pieces((1, 2, 3)), 100, length=63, seed=0)
    assert (lonely.pairs, lonely.num_boundaries, lonely.num_without_foreign) == ([], 2, 2)


def test_ranks_and_next_sentences_are_the_models_own():
    model = trained()
    hidden = [Hidden("a", (CLS, 5, 6, 7, SEP), 2), Hidden("b", (CLS, 8, SEP), 1), Hidden("c", (CLS, *[9] * 7, SEP), 7)]
    ranks = cloze_ranks(model, hidden, mask_id=MASK, pad_id=0, batch_size=2)
    for item, rank in zip(hidden, ranks, strict=True):
        row = [*item.row[: item.place], MASK, *item.row[item.place + 1 :]]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([row])).prediction_logits[0, item.place]
        assert rank == sum(logits > logits[item.row[item.place]])
    pairs = [PassagePair("a", (5, 6), (7,), True), PassagePair("b", (8,), (9, 10, 11, 12, 5), False)]
    said = says_next(model, pairs, cls=CLS, sep=SEP, pad_id=0, batch_size=2)
    for pair, answer in zip(pairs, said, strict=True):
        row = [CLS, *pair.first, SEP, *pair.second, SEP]
        types = [0] * (len(pair.first) + 2) + [1] * (len(pair.second) + 1)
        with torch.no_grad():
            logits = model(torch.tensor([row]), token_type_ids=torch.tensor([types])).seq_relationship_logits[0]
        assert answer == (logits[0] > logits[1])
    assert cloze_ranks(model, [], mask_id=MASK, pad_id=0, batch_size=2).tolist() == []


def test_only_a_trained_head_counts_as_trained():
    model = network()
    assert not is_trained(model.cls.predictions)
    assert not is_trained(model.cls.seq_relationship)
    batch = torch.tensor([[CLS, 5, 6, SEP]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loss = nn.functional.cross_entropy(model(batch).prediction_logits[0], batch[0])
    loss.backward()
    optimizer.step()
    assert is_trained(model.cls.predictions)
    assert not is_trained(model.cls.seq_relationship)


def test_the_unigram_baseline_by_hand(tmp_path):
    # In training 乙 comes 4 times, 甲 3, 。 2, 丙 and 丁 once: the five most frequent. 龙 is unknown and no guess.
    train = [("乙乙乙甲。", "龙" * 9 + "乙甲甲。"), ("丙丁",)]
    # Held out: 乙 3 times, 甲 once, 子 4 times, 。 twice; all ten are asked.
    held_out = [("乙乙甲。",), ("子子子乙子。",)]
    metrics, report, _ = probe(tmp_path, corpus={"train": train, "validation": held_out})
    assert metrics["cloze_baseline"] == pytest.approx(3 / 10)
    assert metrics["cloze_top5_baseline"] == pytest.approx(6 / 10)
    assert report["tables"][0]["rows"][0][2] == "30.0 %"
    assert piece_counts(pieces((2, 3), (1,)), 200)[[100, 101, 110]].tolist() == [2, 3, 1]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_everything_is_measured_counted_and_written_alike(tmp_path, language):
    metrics, report, out = probe(tmp_path, language=language, num_sentence_pairs=21)
    assert (report["probe"], report["encoder"], report["language"]) == ("cloze", "bert", language)
    assert set(report["headline"]) == {
        "cloze_accuracy", "cloze_top5_accuracy", "cloze_nsp_accuracy", "cloze_minimal_pair_accuracy"
    }  # fmt: skip
    assert report["metrics"] == pytest.approx(metrics)
    for name in report["headline"]:
        assert metrics[f"{name}_low"] <= metrics[name] <= metrics[f"{name}_high"]
    assert (metrics["cloze_num_sentence_pairs"], metrics["cloze_nsp_baseline"]) == (20, 0.5)
    dropped = {name.removeprefix("cloze_num_dropped_"): value for name, value in metrics.items() if "dropped" in name}
    assert dropped == {"same_pieces": 1, "too_long": 1, "unknown_piece": 1, "limit": 0, "boundaries": 0}
    assert metrics["cloze_num_minimal_pairs"] + 3 == len(PAIRS)
    for ledger in report["tables"][2:]:
        assert sum(row[1] for row in ledger["rows"][:-1]) == ledger["rows"][-1][1]
    assert (out / report["figures"][0]["file"]).stat().st_size > 5000
    assert hash_folder(out) == hash_folder(probe(tmp_path, name="again", language=language, num_sentence_pairs=21)[2])


def test_the_minimal_pair_baseline_by_hand(tmp_path):
    # 甲 is common and 乙 rare in training: by frequency the first pair is right, the second wrong, the third a tie.
    pairs = [("甲。", "乙。", "x"), ("乙。", "甲。", "x"), ("甲乙", "乙甲", "x")]
    metrics, report, _ = probe(tmp_path, pairs=pairs, corpus={"train": [("甲甲甲乙。",)]})
    assert metrics["cloze_minimal_pair_baseline"] == pytest.approx(0.5)
    assert report["tables"][1]["rows"][0][2:] == ["50.0 %", 3]


def test_next_sentences_are_left_out_where_they_were_not_trained(tmp_path):
    metrics, report, _ = probe(tmp_path, lambda folder: bert(folder, objective="mlm"))
    assert not any("nsp" in name or "sentence_pairs" in name for name in metrics)
    assert "was not trained" in report["sentences"][-1]["en"]


def test_next_sentences_are_left_out_where_documents_are_too_few(tmp_path):
    metrics, report, _ = probe(tmp_path, corpus={"validation": documents(1)})
    assert "cloze_nsp_accuracy" not in metrics
    assert metrics["cloze_num_dropped_boundaries"] == 3
    assert "Only 0 pairs of passages" in report["sentences"][-1]["en"]


def test_a_list_without_any_usable_pair_is_said(tmp_path):
    metrics, report, _ = probe(tmp_path, pairs=PAIRS[2:])
    assert "cloze_minimal_pair_accuracy" not in metrics
    assert metrics["cloze_num_minimal_pairs"] == 0
    assert any("No minimal pair could be scored" in sentence["en"] for sentence in report["sentences"])


def masked_only(folder):
    BertForMaskedLM(network().config).save_pretrained(folder)
    bert_folder = folder / "x"
    bert_folder.mkdir()
    bert(bert_folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "encoder.json"):
        (bert_folder / name).rename(folder / name)


@pytest.mark.parametrize(
    ("maker", "reason"),
    [
        (bag, "This bag_of_words encoder has no masked-language head"),
        (word2vec, "This word2vec encoder has no masked-language head"),
        (recurrent, "This recurrent encoder has no masked-language head"),
        (lambda folder: bert(folder, network()), "no trained masked-language head"),
        (masked_only, "no trained masked-language head"),
    ],
)
def test_an_encoder_that_predicts_nothing_gets_no_number(tmp_path, maker, reason):
    metrics, report, out = probe(tmp_path, maker, language="en")
    assert metrics == {}
    assert (report["meaningful"], report["headline"], report["metrics"], report["tables"]) == (False, {}, {}, [])
    assert reason in report["reason"]
    assert [path.name for path in out.iterdir()] == ["probe.json"]


def test_an_encoder_of_another_language_gets_no_number(tmp_path):
    texts = documents(10, words="龙凤龟麟甲")
    metrics, report, _ = probe(tmp_path, language="en", corpus={"validation": texts})
    assert metrics == {}
    assert "of the held-out text is unknown to the encoder" in report["reason"]


def test_a_corpus_without_held_out_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="no held-out text"):
        probe(tmp_path, corpus={"validation": [("",)]})
