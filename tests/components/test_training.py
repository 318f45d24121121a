"""The training loop and its checkpoints: cases train-01 to train-08."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from components.checkpoints import CheckpointState, latest_checkpoint, resume, save_checkpoint
from components.errors import ArtifactError, TrainingError
from components.training import (
    StepLoss,
    TrainingSettings,
    choose_precision,
    learning_rate_at,
    make_optimizer,
    step_seed,
    train,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class TinyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.dropout = nn.Dropout(0.3)
        self.last = nn.Linear(8, 1)

    def forward(self, inputs):
        return self.last(self.dropout(torch.tanh(self.first(inputs))))


class TiedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.decoder = nn.Linear(6, 11)
        self.decoder.weight = self.embedding.weight


def make_net(kind=TinyNet):
    torch.manual_seed(7)
    return kind()


def losses_for(net, stop_at=None):
    """Data shuffled by step, dropout in the net: everything that resuming could get wrong."""

    def losses_at(step):
        if step == stop_at:
            raise KeyboardInterrupt
        generator = torch.Generator().manual_seed(step_seed(3, step))
        inputs = torch.randn(5, 4, generator=generator)
        yield StepLoss((net(inputs) - inputs.sum(1, keepdim=True)).square().mean(), {"size": 5.0}, (f"data:{step}",))

    return losses_at


SETTINGS = TrainingSettings(
    num_train_steps=24, learning_rate=0.01, seed=5, warmup_steps=4, checkpoint_every_steps=5, log_every_steps=3
)


def run(net, folder=None, stop_at=None, settings=SETTINGS):
    logged = {}
    result = None
    try:
        result = train(
            net,
            losses_for(net, stop_at),
            settings,
            checkpoint_dir=folder,
            log_metrics=lambda metrics, step=None: logged.update({step: dict(metrics)}),
        )
    except KeyboardInterrupt:
        assert stop_at is not None
    return result, logged


def equal_weights(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


@pytest.mark.parametrize("stop_at", [1, 5, 11, 13, 23])
def test_train_01_resume_equals_uninterrupted(tmp_path, stop_at):
    whole, parts = make_net(), make_net()
    whole_result, whole_log = run(whole)
    _, first_log = run(parts, tmp_path, stop_at)
    parts = make_net()
    with torch.no_grad():
        for parameter in parts.parameters():
            parameter.add_(stop_at >= 5)
    result, second_log = run(parts, tmp_path)
    assert result.resumed_from_step == stop_at // 5 * 5
    # Every step logged by either attempt has the very numbers of the uninterrupted run: 0 steps differ.
    assert {**first_log, **second_log} == whole_log
    assert all(first_log[step] == whole_log[step] for step in first_log)
    assert equal_weights(whole, parts)
    assert result.final_metrics == whole_result.final_metrics


def test_resume_does_not_depend_on_generator_state(tmp_path):
    one, other = make_net(), make_net()
    run(one, tmp_path / "a", 7)
    run(other, tmp_path / "b", 7)
    torch.manual_seed(99)
    run(one := make_net(), tmp_path / "a")
    torch.manual_seed(1)
    torch.randn(100)
    run(other := make_net(), tmp_path / "b")
    assert equal_weights(one, other)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json", "all"])
def test_train_02_incomplete_checkpoint_falls_back(tmp_path, name, caplog):
    whole = make_net()
    run(whole)
    run(make_net(), tmp_path, 13)
    newest = tmp_path / "step-00000010"
    assert latest_checkpoint(tmp_path) == newest
    for path in list(newest.iterdir()):
        if name in {"all", path.name}:
            path.unlink()
    with caplog.at_level(logging.WARNING):
        result, _ = run(resumed := make_net(), tmp_path)
    assert result.resumed_from_step == 5
    assert "step-00000010 is not usable" in caplog.text
    assert equal_weights(whole, resumed)


def test_train_02_truncated_and_empty_checkpoints_are_skipped_and_replaced(tmp_path):
    run(make_net(), tmp_path, 13)
    weights = tmp_path / "step-00000010" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    (tmp_path / "step-00000998").mkdir()
    (tmp_path / "step-00000999").mkdir()
    assert latest_checkpoint(tmp_path) == tmp_path / "step-00000005"
    run(make_net(), tmp_path, 13)
    # The good checkpoints made after resuming survive although damaged ones sort behind them.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000005", "step-00000010"]
    assert latest_checkpoint(tmp_path) == tmp_path / "step-00000010"


KILLED_WHILE_SAVING = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from components.checkpoints import CheckpointState, latest_checkpoint, save_checkpoint
from components.training import TrainingSettings, make_optimizer
torch.set_num_threads(1)
folder, generator = Path(sys.argv[1]), random.Random(1)
net = torch.nn.Linear(300, 300)
optimizer = make_optimizer(net, TrainingSettings(num_train_steps=1, learning_rate=0.1, seed=0))
net(torch.ones(1, 300)).sum().backward()
optimizer.step()
save_checkpoint(folder, net, optimizer, CheckpointState(1))
for attempt in range(50):
    child = os.fork()
    if child == 0:
        for step in range(attempt * 1000 + 2, 10**6):
            save_checkpoint(folder, net, optimizer, CheckpointState(step))
    time.sleep(generator.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    names = sorted(path.name for path in folder.glob("step-*"))
    found = latest_checkpoint(folder)
    assert found is not None and found.name == names[-1], (found, names)
print("ok")
"""


def test_train_03_kill_during_save_never_leaves_an_unreadable_checkpoint(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_SAVING, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "ok", done.stderr
    net = nn.Linear(300, 300)
    state = resume(net, make_optimizer(net, SETTINGS), tmp_path)
    assert state.step > 1
    assert not list(tmp_path.glob(".writing-*"))


FULL_DISK = """
import resource, sys
from pathlib import Path
import torch
from components.checkpoints import CheckpointState, latest_checkpoint, save_checkpoint
from components.errors import TrainingError
from components.training import TrainingSettings, make_optimizer
folder = Path(sys.argv[1])
net = torch.nn.Linear(300, 300)
optimizer = make_optimizer(net, TrainingSettings(num_train_steps=1, learning_rate=0.1, seed=0))
save_checkpoint(folder, net, optimizer, CheckpointState(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    save_checkpoint(folder, net, optimizer, CheckpointState(2))
except TrainingError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(sorted(path.name for path in folder.iterdir()), latest_checkpoint(folder).name)
save_checkpoint(folder, net, optimizer, CheckpointState(3))
print(latest_checkpoint(folder).name)
"""


def test_train_04_full_disk_keeps_the_previous_checkpoint(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "c")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stdout + done.stderr
    assert "cannot save checkpoint" in lines[0]
    assert "step-00000002" in lines[0]
    assert f"{3 * 4 * (300 * 300 + 300):,} bytes needed" in lines[0]
    assert "free" in lines[0]
    assert lines[1] == "['step-00000001'] step-00000001"
    assert lines[2] == "step-00000003"


def test_train_05_tied_weights_round_trip(tmp_path):
    net, optimizer = make_net(TiedNet), None
    optimizer = make_optimizer(net, SETTINGS)
    net.decoder(net.embedding(torch.tensor([1, 2]))).sum().backward()
    optimizer.step()
    save_checkpoint(tmp_path, net, optimizer, CheckpointState(3, 1.5, {"loss": 2.0}, {"loss": (4.0, 2)}))
    other = TiedNet()
    other_optimizer = make_optimizer(other, SETTINGS)
    state = resume(other, other_optimizer, tmp_path)
    assert state == CheckpointState(3, 1.5, {"loss": 2.0}, {"loss": (4.0, 2)})
    assert other.decoder.weight is other.embedding.weight
    ids = torch.arange(11)
    assert torch.equal(net.decoder(net.embedding(ids)), other.decoder(other.embedding(ids)))
    for one, two in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(optimizer.state[one]["exp_avg_sq"], other_optimizer.state[two]["exp_avg_sq"])
        assert torch.equal(optimizer.state[one]["step"], other_optimizer.state[two]["step"])


def test_train_06_micro_batches_equal_the_full_batch():
    inputs, counts = torch.randn(8, 4), torch.tensor([1.0, 5, 2, 2, 7, 1, 3, 3])

    def train_with(size):
        net = make_net()
        net.dropout.p = 0.0

        def losses_at(step):
            for start in range(0, 8, size):
                part = slice(start, start + size)
                squares = net(inputs[part]).square().squeeze(1) * counts[part]
                yield StepLoss(squares.sum() / counts.sum(), {"share": size / 8})

        settings = TrainingSettings(num_train_steps=3, learning_rate=0.01, seed=0, log_every_steps=1)
        return net, train(net, losses_at, settings)

    (full, full_result), (small, small_result) = train_with(8), train_with(1)
    for one, two in zip(full.parameters(), small.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-6)
    assert full_result.final_metrics["loss"] == pytest.approx(small_result.final_metrics["loss"], abs=1e-6)
    assert small_result.final_metrics["share"] == 1.0


def poisoned(net, at, value):
    def losses_at(step):
        inputs = torch.full((2, 4), value if step == at else 0.5)
        yield StepLoss(net(inputs).square().mean(), {}, ("reviews.csv:7", "reviews.csv:9"))

    return losses_at


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_train_07_non_finite_loss_stops_with_step_rows_and_checkpoint(tmp_path, value):
    net = make_net()
    with pytest.raises(TrainingError, match=r"step 13: .*reviews\.csv:7, reviews\.csv:9.*step-00000010"):
        train(net, poisoned(net, 13, value), SETTINGS, checkpoint_dir=tmp_path)
    assert all(bool(torch.isfinite(parameter).all()) for parameter in net.parameters())
    assert latest_checkpoint(tmp_path) == tmp_path / "step-00000010"


def test_train_07_huge_learning_rate_never_saves_or_returns_bad_weights(tmp_path):
    settings = TrainingSettings(num_train_steps=24, learning_rate=1e38, seed=0, checkpoint_every_steps=1)
    net = make_net()
    with pytest.raises(TrainingError, match="not finite"):
        train(net, losses_for(net), settings, checkpoint_dir=tmp_path)
    for path in tmp_path.glob("step-*"):
        resumed = make_net()
        resume(resumed, make_optimizer(resumed, SETTINGS), path.parent)
        assert all(bool(torch.isfinite(parameter).all()) for parameter in resumed.parameters())


def test_train_07_last_update_is_checked_too():
    settings = TrainingSettings(num_train_steps=1, learning_rate=float("inf"), seed=0)
    net = make_net()
    with pytest.raises(TrainingError, match="after step 1"):
        train(net, losses_for(net), settings)


def test_train_08_thread_count_is_recorded_and_a_change_reported(tmp_path, caplog):
    run(make_net(), tmp_path, 7)
    assert '"num_threads": 1' in (tmp_path / "step-00000005" / "state.json").read_text()
    torch.set_num_threads(2)
    with caplog.at_level(logging.WARNING):
        run(make_net(), tmp_path, 8)
    assert "made with 1 threads, this run has 2" in caplog.text


def test_checkpoint_of_another_model_is_refused(tmp_path):
    run(make_net(), tmp_path, 7)
    with pytest.raises(ArtifactError, match="does not fit this model"):
        resume(other := TiedNet(), make_optimizer(other, SETTINGS), tmp_path)


def test_learning_rate_schedule():
    settings = TrainingSettings(num_train_steps=10, learning_rate=1.0, seed=0, warmup_steps=2)
    rates = [learning_rate_at(settings, step, step / 10) for step in range(10)]
    assert rates == pytest.approx([0.5, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125])
    constant = TrainingSettings(num_train_steps=10, learning_rate=1.0, seed=0, schedule="constant")
    assert [learning_rate_at(constant, step, step / 10) for step in (0, 9)] == [1.0, 1.0]


def test_clock_ends_training_and_reports_progress():
    net, progress = make_net(), []
    settings = TrainingSettings(num_train_steps=0, learning_rate=0.01, seed=0, max_minutes=0.005, log_every_steps=10)
    began = time.perf_counter()
    result = train(
        net, losses_for(net), settings, log_metrics=lambda metrics, step=None: progress.append(metrics["progress"])
    )
    assert 0.3 <= time.perf_counter() - began < 5
    assert result.num_steps > 10
    assert progress == sorted(progress)
    assert 0 < result.step_seconds <= result.seconds


def test_zero_steps_train_nothing():
    net, before = make_net(), make_net()
    result = train(net, losses_for(net), TrainingSettings(num_train_steps=0, learning_rate=0.01, seed=0))
    assert result.num_steps == 0
    assert equal_weights(net, before)


def test_weight_decay_spares_vectors_and_frozen_parameters_are_left_out():
    net = make_net()
    net.first.weight.requires_grad_(False)
    groups = make_optimizer(net, SETTINGS).param_groups
    assert [(group["weight_decay"], len(group["params"])) for group in groups] == [(0.01, 1), (0.0, 2)]


def test_precision_on_request_and_by_hardware(monkeypatch):
    cpu = torch.device("cpu")
    assert choose_precision("bfloat16", cpu) == "bfloat16"
    monkeypatch.setattr("components.training._cpu_has_bf16", lambda: False)
    assert choose_precision("auto", cpu) == "float32"


def test_step_seeds_give_every_seed_and_step_its_own_random_numbers():
    """torch's generator on the CPU reads only the low 32 bits of a seed."""
    drawn = {
        tuple(torch.rand(2, generator=torch.Generator().manual_seed(step_seed(seed, step))).tolist())
        for seed in range(20)
        for step in range(50)
    }
    assert len(drawn) == 1000
