from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn

from components.artifacts import hash_folder
from components.probes import recall_stage
from components.probes.gradients import SMALLEST, gradient_norms
from components.probes.recall import RecallTask, build_model, count_parameters
from components.probes.recall_stage import memory_length, probe_recall, run_model
from components.probes.structure_config import RECALL_MODELS, RecallProbeConfig

TASK = RecallTask(num_values=4, num_fillers=5, distances=(2, 5, 10, 20), max_lead=3)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("distance", TASK.distances)
def test_the_deciding_token_lies_k_positions_before_the_query(distance):
    for seed in range(20):
        input_ids, values = TASK.draw(distance, 8, generator(seed))
        assert (input_ids[:, -1] == 0).all()
        assert torch.equal(input_ids[:, -1 - distance], 1 + values)
        fillers = torch.cat([input_ids[:, : -1 - distance], input_ids[:, -distance:-1]], dim=1)
        assert ((fillers > TASK.num_values) & (fillers < TASK.vocab_size)).all()
        assert distance < input_ids.shape[1] <= TASK.max_length


def test_a_training_batch_follows_seed_and_step():
    first, again, other = (TASK.training_batch(step, 4, seed=1)[0] for step in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    # torch's generator on the CPU ignores the upper half of a seed: another seed must give other sequences.
    assert not torch.equal(first, TASK.training_batch(3, 4, seed=2)[0])


@pytest.mark.parametrize("name", RECALL_MODELS)
@pytest.mark.parametrize("num_parameters", [8_000, 30_000])
def test_models_have_equal_numbers_of_parameters(name, num_parameters):
    model = build_model(name, TASK, num_parameters, seed=0)
    assert count_parameters(model) == pytest.approx(num_parameters, rel=0.04)
    assert model(TASK.draw(20, 3, generator())[0]).shape == (3, TASK.num_values)


@pytest.mark.parametrize(
    ("accuracy", "expected"),
    [
        # Chance is 1/4, so the middle is 0.625.
        ([1, 0.7, 0.63, 0.3], 10),
        ([1, 0.7, 0.625, 0.3], 5),
        ([1, 1, 1, 0.9], 20),
        ([0.4, 1, 1, 1], 0),
        ([1, 0.5, 1, 1], 2),
    ],
)
def test_memory_length_by_hand(accuracy, expected):
    assert memory_length(np.array(accuracy, dtype=np.float64), TASK) == expected


class Planted(nn.Module):
    """Knows the deciding token if it is among the last ``reach`` positions; else it guesses the first value."""

    def __init__(self, reach):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.reach = reach

    def forward(self, input_ids_BL):
        seen = input_ids_BL[:, -1 - self.reach :]
        return self.scale * torch.stack([(seen == 1 + value).any(1).float() for value in range(TASK.num_values)], 1)


def planted(monkeypatch, reach, **settings):
    monkeypatch.setattr(recall_stage, "build_model", lambda *_: Planted(reach))
    config = RecallProbeConfig(
        distances=TASK.distances, num_values=4, num_fillers=5, num_train_steps=1, num_resamples=200,
        learning_rate=1e-6, num_test_sequences=400, **settings,
    )  # fmt: skip
    return config, run_model("bert", TASK, config)


def test_a_perfect_and_a_blind_model(monkeypatch):
    _, perfect = planted(monkeypatch, reach=100)
    assert perfect.accuracy_K.tolist() == [1, 1, 1, 1]
    assert (perfect.memory, perfect.memory_low, perfect.memory_high) == (20, 20, 20)
    _, blind = planted(monkeypatch, reach=0)
    np.testing.assert_allclose(blind.accuracy_K, 0.25, atol=0.06)
    assert (blind.memory, blind.memory_high) == (0, 0)
    assert (blind.low_K < blind.accuracy_K).all()
    assert (blind.accuracy_K < blind.high_K).all()


def test_a_model_that_remembers_ten_tokens(monkeypatch, tmp_path):
    config, found = planted(monkeypatch, reach=10)
    assert (found.memory, found.memory_low, found.memory_high) == (10, 10, 10)
    np.testing.assert_allclose(found.accuracy_K, [1, 1, 1, 0.25], atol=0.06)
    assert found.gradients == {}
    metrics = probe_recall(config.model_copy(update={"models": ("bert",)}), out_dir=tmp_path)
    assert metrics["recall_bert_memory"] == 10
    report = json.loads((tmp_path / "probe.json").read_text(encoding="utf-8"))
    assert report["sentences"][0]["en"].startswith("Learned under this training (1 steps at 30,000 parameters")
    assert "BERT 10 [10, 10]" in report["sentences"][0]["en"]
    assert report["headline"] == {"recall_bert_memory": 10}
    assert [figure["file"] for figure in report["figures"]] == ["recall.png"]


def test_gradient_norms_of_a_linear_recurrent_network_in_closed_form():
    """h_t = a Q h_(t-1) + x_t with a rotation Q: d positions back the gradient of ±h is a^d times as long."""
    decay, rotation = 0.8, torch.linalg.qr(torch.randn(6, 6, generator=generator()).double())[0]

    def read(inputs_BLE):
        state = torch.zeros(len(inputs_BLE), 6, dtype=torch.float64)
        for step in inputs_BLE.unbind(1):
            state = decay * state @ rotation + step
        return state

    norms = gradient_norms(read, torch.randn(3, 15, 6, generator=generator(1)).double())
    np.testing.assert_allclose(norms, 6**0.5 * decay ** np.arange(15), rtol=1e-9)


def test_a_gradient_that_vanishes_is_written_as_the_smallest():
    norms = gradient_norms(lambda inputs: inputs[:, -1], torch.ones(2, 4, 9))
    np.testing.assert_allclose(norms, [3, SMALLEST, SMALLEST, SMALLEST])


def test_an_untrained_rnn_loses_its_gradient_faster_than_an_lstm():
    task = RecallTask(4, 5, (2, 60), 3)
    reaches = {name: recall_stage.reach(build_model(name, task, 10_000, 0), task, 0) for name in ("rnn", "lstm")}
    ratio = {name: norms[60] / norms[1] for name, norms in reaches.items()}
    assert len(reaches["rnn"]) == 61
    assert ratio["rnn"] < 1e-3 * ratio["lstm"]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_stage_writes_the_same_bytes_twice(tmp_path, language):
    config = RecallProbeConfig(
        language=language, distances=(2, 4), num_parameters=2_000, num_values=2, num_fillers=3, num_seeds=2,
        num_train_steps=8, num_test_sequences=10, num_resamples=100, batch_size=8,
    )  # fmt: skip
    outs = [tmp_path / "one", tmp_path / "two"]
    seen = []
    for out in outs:
        out.mkdir()
        metrics = probe_recall(config, out_dir=out, log_metrics=lambda values, step=None: seen.append(values))
    assert hash_folder(outs[0]) == hash_folder(outs[1])
    assert seen[3] == {"progress": 1.0}
    assert {f"recall_{name}_{kind}" for name in RECALL_MODELS for kind in ("memory", "accuracy")} < set(metrics)
    report = json.loads((outs[0] / "probe.json").read_text(encoding="utf-8"))
    assert (report["probe"], report["encoder"], report["language"], report["meaningful"]) == (
        "recall", "none", language, True,
    )  # fmt: skip
    assert all((outs[0] / figure["file"]).stat().st_size > 5000 for figure in report["figures"])
    assert [figure["file"] for figure in report["figures"]] == ["recall.png", "gradients.png"]
    assert "在此训练下" in report["sentences"][0]["zh"]


def test_an_lstm_learns_the_task(tmp_path):
    config = RecallProbeConfig(
        language="en", distances=(3, 6), models=("lstm",), num_parameters=5_000, num_values=4, num_fillers=4,
        num_seeds=1, num_train_steps=150, learning_rate=1e-2,
    )  # fmt: skip
    metrics = probe_recall(config, out_dir=tmp_path)
    assert metrics["recall_lstm_accuracy"] > 0.95
    assert metrics["recall_lstm_memory"] == 6
    assert "LSTM at least 6" in json.loads((tmp_path / "probe.json").read_text())["sentences"][0]["en"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"distances": (5, 3)}, "must rise"), ({"models": ("rnn", "rnn")}, "name one twice")],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        RecallProbeConfig(**settings)
