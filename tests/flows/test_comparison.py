"""What a ladder compares besides its rungs: controls, label counts, probes."""

from __future__ import annotations

import json

import pytest

from components.artifacts import Artifact
from components.bert.config import PretrainingConfig
from components.errors import ConfigError
from components.finetuning.config import ClassificationConfig
from components.probes.meaning_config import SenseProbeConfig
from components.probes.structure_config import ClozeProbeConfig, RecallProbeConfig
from components.rnn.config import RecurrentConfig
from flows.controls import ControlPair, chosen_controls
from flows.encoders import EncoderSettings
from flows.label_curve import LabelCurveSection, extra_counts
from flows.probing import ProbesSection, Probing, planned_probes
from flows.rungs import Rung
from flows.tasks import TaskRun


def encoders(**changed) -> EncoderSettings:
    sections = {"recurrent": RecurrentConfig(), "pretraining": PretrainingConfig(), "warm_start": False, **changed}
    others = dict.fromkeys(("segmenter", "tokenizer", "bag_of_words", "word2vec"))
    return EncoderSettings(**others, **sections)


RUNGS = [
    Rung(name="tfidf", encoder="tfidf"),
    Rung(name="skipgram", encoder="word2vec", sg=1),
    Rung(name="lstm", encoder="recurrent", cell="lstm"),
    Rung(name="lstm_vectors", encoder="recurrent", cell="lstm", embeddings="skipgram"),
    Rung(name="lstm_lm", encoder="recurrent", cell="lstm", objective="language_model"),
    Rung(name="bert_random", encoder="bert", pretrained=False),
    Rung(name="bert_no_nsp", encoder="bert", nsp=False),
    Rung(name="bert", encoder="bert"),
]


def found(rungs=RUNGS, **changed) -> set[tuple[str, str, str]]:
    pairs = chosen_controls(None, rungs, encoders(**changed))
    return {(pair.ingredient, pair.without, pair.with_) for pair in pairs}


def test_pairs_that_differ_in_one_ingredient_are_found():
    assert found() == {
        ("Word2Vec vectors", "lstm", "lstm_vectors"),
        ("language-model pretraining", "lstm", "lstm_lm"),
        ("pretraining", "bert_random", "bert"),
        ("next-sentence prediction", "bert_no_nsp", "bert"),
    }


def test_the_warm_start_is_named_as_part_of_what_is_added():
    assert ("warm start and pretraining", "bert_random", "bert") in found(warm_start=True)


def test_a_section_counts_where_the_rung_is_silent():
    without_nsp = PretrainingConfig(nsp=False)
    assert ("next-sentence prediction", "bert_no_nsp", "bert") not in found(pretraining=without_nsp)


def test_rungs_that_differ_twice_isolate_nothing():
    rungs = [
        Rung(name="rnn", encoder="recurrent", cell="rnn"),
        Rung(name="lstm", encoder="recurrent", cell="lstm", bidirectional=False, crf=True),
        RUNGS[1],
    ]
    assert found(rungs) == set()


@pytest.mark.parametrize("pair", [("bert", "nobody"), ("bert", "bert")])
def test_a_control_that_cannot_be_is_refused(pair):
    without, with_ = pair
    with pytest.raises(ConfigError, match=r"comparison.controls: x .*(nobody|itself)"):
        chosen_controls([ControlPair(ingredient="x", without=without, with_=with_)], RUNGS, encoders())


def test_controls_are_written_as_without_and_with():
    pair = ControlPair.model_validate({"ingredient": "x", "without": "lstm", "with": "bert"})
    assert chosen_controls([pair], RUNGS, encoders()) == [pair]


def dataset(tmp_path, count: int) -> Artifact:
    (tmp_path / "train.jsonl").write_text("{}\n" * count, encoding="utf-8")
    return Artifact(tmp_path, "audit_leaks", "k", "d")


def task(budget: int | None) -> TaskRun:
    return TaskRun("classification", ClassificationConfig(), ClassificationConfig(num_train_examples=budget))


def test_the_label_curve_adds_smaller_numbers_only_and_says_so(tmp_path, capsys):
    section = LabelCurveSection(num_train_examples=(100, 300, 1000, 3000, None))
    assert extra_counts(section, task(1000), dataset(tmp_path, 2000)) == [100, 300]
    assert "1,000, 3,000 labels" in " ".join(capsys.readouterr().out.split())
    assert extra_counts(section, task(None), dataset(tmp_path, 2000)) == [100, 300, 1000]
    assert extra_counts(None, task(1000), dataset(tmp_path, 2000)) == []
    assert extra_counts(section.model_copy(update={"tasks": ("ner",)}), task(1000), dataset(tmp_path, 2000)) == []


@pytest.mark.parametrize(
    "wrong", [{"num_train_examples": [5, 5]}, {"rungs": ["lsmt"]}, {"tasks": ["question_answering"]}]
)
def test_a_label_curve_that_cannot_be_is_refused(wrong):
    section = LabelCurveSection.model_validate_json(json.dumps({"num_train_examples": [5, 10], **wrong}))
    with pytest.raises(ConfigError, match="label_curve"):
        section.check(["lstm"], ["classification"])


def test_every_chosen_rung_is_probed_and_recall_once():
    section = ProbesSection(senses=SenseProbeConfig(), recall=RecallProbeConfig(), rungs=("bert",))
    assert planned_probes(section, ["lstm", "bert"]) == [Probing("senses", "bert"), Probing("recall", None)]
    assert planned_probes(ProbesSection(cloze=ClozeProbeConfig()), ["lstm", "bert"]) == [
        Probing("cloze", "lstm"), Probing("cloze", "bert"),
    ]  # fmt: skip


def test_probes_take_the_language_of_the_ladder_and_refuse_another():
    section = ProbesSection(senses=SenseProbeConfig())
    assert section.chosen("en")["senses"] == SenseProbeConfig(language="en")
    with pytest.raises(ConfigError, match=r"probes.senses.language"):
        ProbesSection(senses=SenseProbeConfig(language="zh")).check(["bert"], "en")
    with pytest.raises(ConfigError, match=r"probes.rungs names \['brt'\]"):
        ProbesSection(rungs=("brt",)).check(["bert"], "zh")
