"""pipelines.yaml is read strictly: every misspelling and wrong type is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from components.errors import InputError
from flows.controls import chosen_controls
from flows.pipelines import check_parameters, load_pipelines, parameters_model, set_field

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "pipelines.yaml").read_text(encoding="utf-8")


def load(tmp_path: Path, text: str):
    path = tmp_path / "pipelines.yaml"
    path.write_text(text, encoding="utf-8")
    return load_pipelines(path)


def test_our_own_file_is_accepted_and_quick_has_the_promised_rungs(tmp_path):
    quick = load(tmp_path, TEXT)["quick"]
    assert [rung["name"] for rung in quick.parameters["rungs"]] == [
        "one_hot", "tfidf", "word2vec_cbow", "word2vec_skipgram", "rnn", "lstm", "lstm_word2vec", "bert_random", "bert",
    ]  # fmt: skip
    assert len(quick.parameters["seeds"]) >= 3


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (
            "    schedules:",
            "    shedules:",
            r"yaml:\d+: deployments.0.shedules: unknown field.*did you mean 'schedules'",
        ),
        ("      seeds:", "      sedes:", r"yaml:\d+: .*seeds"),
        ("mlm_probability:", "mlm_probabilty:", r"mlm_probabilty: unknown field.*did you mean 'mlm_probability'"),
        ("{name: one_hot, encoder: one_hot}", "{name: one_hot, encodr: one_hot}", r"yaml:\d+: .*rungs.0"),
        ("cell: rnn}", "cel: rnn}", r"rungs.4.cel: unknown field.*did you mean 'cell'"),
        ("vocab_size: 6000", "vocab_size: many", r"tokenizer.vocab_size.*'many'"),
        ("mlm_probability: 0.3", "mlm_probability: 1.5", r"mlm_probability.*less than 1.*1\.5"),
        ("language: zh", "language: no", r"language.*False"),
        ("entrypoint: flows.ladder.ladder", "entrypoint: flows/ladder.py:ladder", r"entrypoint"),
        ("cell: rnn}", "cell: rnn, sg: 1}", r"sg means nothing for recurrent"),
        ("name: rungs", "name: [", r"not valid YAML"),
        ("collision_strategy: CANCEL_NEW", "collision_strategy: SOMETIMES", r"collision_strategy.*SOMETIMES"),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_suggestion(tmp_path, right, wrong, message):
    assert right in TEXT
    with pytest.raises(InputError, match=message):
        load(tmp_path, TEXT.replace(right, wrong, 1))


def test_the_line_is_the_line_of_the_mistake(tmp_path):
    text = TEXT.replace("mlm_probability:", "mlm_probabilty:")
    line = 1 + text[: text.index("mlm_probabilty")].count("\n")
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    assert caught.value.line == line


def test_ft_05_label_names_that_yaml_reads_as_other_types_are_refused_with_line(tmp_path):
    for label in ("yes", "no", "on", "010", "12:30", "~"):
        text = TEXT.replace("source: package,", f"source: package, labels: [a, {label}],", 1)
        with pytest.raises(InputError, match=r"yaml:\d+: .*labels\.1.*string"):
            load(tmp_path, text)
    quoted = TEXT.replace(
        "source: package,", 'source: package, labels: ["yes", "no", "on", "1e3", "010", "12:30", "~"],', 1
    )
    labels = load(tmp_path, quoted)["quick"].parameters["classification"]["dataset"]["labels"]
    assert labels == ["yes", "no", "on", "1e3", "010", "12:30", "~"]


def test_two_deployments_of_one_name_are_refused(tmp_path):
    file = yaml.safe_load(TEXT)
    file["deployments"] *= 2
    with pytest.raises(InputError, match="appears twice"):
        load(tmp_path, yaml.safe_dump(file))


def test_set_changes_one_field_and_keeps_the_rest(tmp_path):
    quick = load(tmp_path, TEXT)["quick"]
    changed = set_field(quick.parameters, "pretraining.mlm_probability=0.2")
    assert changed["pretraining"]["mlm_probability"] == 0.2
    assert quick.parameters["pretraining"]["mlm_probability"] == 0.3
    assert changed["rungs"] == quick.parameters["rungs"]
    assert set_field(quick.parameters, "rungs.4.cell=gru")["rungs"][4]["cell"] == "gru"
    assert set_field(quick.parameters, "seeds=[7]")["seeds"] == [7]
    check_parameters(quick, changed, "--set")


@pytest.mark.parametrize("assignment", ["seeds", "=3", "rungs.99.cell=gru", "seeds.x=1", "language.x=1"])
def test_a_malformed_set_is_refused(tmp_path, assignment):
    with pytest.raises(InputError, match="--set"):
        set_field(load(tmp_path, TEXT)["quick"].parameters, assignment)


def test_a_misspelt_set_is_refused_with_a_suggestion(tmp_path):
    quick = load(tmp_path, TEXT)["quick"]
    with pytest.raises(InputError, match="did you mean 'learning_rate'"):
        check_parameters(quick, set_field(quick.parameters, "pretraining.lerning_rate=0.1"), "--set")


def test_prefect_itself_accepts_the_parameters(tmp_path):
    quick = load(tmp_path, TEXT)["quick"]
    assert quick.load_flow().validate_parameters(quick.parameters)["seeds"] == quick.parameters["seeds"]


def settings_of(name: str):
    """What a shipped deployment would climb with."""
    seen = []
    deployment = load_pipelines(ROOT / "pipelines.yaml")[name]
    parameters = parameters_model(deployment).model_validate(deployment.parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flows.ladder.climb", lambda settings, parameters: seen.append(settings))
        deployment.load_flow().fn(**dict(parameters))
    return seen[0]


@pytest.mark.parametrize("name", ["quick", "standard", "english"])
def test_a_shipped_deployment_passes_every_check_before_the_first_stage(name):
    settings_of(name).check()


def test_standard_isolates_every_ingredient():
    settings = settings_of("standard")
    found = {(pair.without, pair.with_) for pair in chosen_controls(None, settings.rungs, settings.encoders)}
    assert {("bert_random", "bert"), ("bert_no_nsp", "bert"), ("lstm", "lstm_word2vec"), ("lstm", "lstm_lm")} == found
