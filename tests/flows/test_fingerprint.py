"""What makes a stage run again, and what does not (fault cases text-12, orch-02)."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from components.artifacts import Artifact
from components.contract import StageConfig
from components.errors import InputError
from flows import fingerprint

MODULE = """
from components import errors
import numpy
from components.{helper} import scale

def double(config, *, corpus, extra=None, out_dir, log_metrics=None):
    'Doubles.'
    return scale(2)  # comment
"""


class Config(StageConfig):
    path: str
    mlm_probability: float = 0.15

    def external_files(self) -> list[Path]:
        return [Path(self.path)]


@pytest.fixture
def stage_code(tmp_path, monkeypatch):
    """A stage module that reaches one more module of ``components``."""
    import components

    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "made_up_helper.py").write_text("def scale(n):\n    return n\n")
    (folder / "made_up_stage.py").write_text(MODULE.format(helper="made_up_helper"))
    monkeypatch.setattr(components, "__path__", [*components.__path__, str(folder)])
    fingerprint.forget_code()
    yield folder
    fingerprint.forget_code()
    assert "components.made_up_helper" not in sys.modules, "reading code must not run it"


def artifact(digest: str) -> Artifact:
    return Artifact(Path("somewhere"), "prepare_corpus", "k", digest)


def key(tmp_path: Path, *, text: str = "春天", digest: str = "a", **config: object) -> str:
    file = tmp_path / "corpus.txt"
    if not file.exists() or file.read_text() != text:
        file.write_text(text)
    fingerprint.forget_code()
    inputs = {"corpus": (artifact(digest),)}
    settings = Config(path=str(file), **config)
    return fingerprint.key_of(fingerprint.identity_of("double", "components.made_up_stage", settings, inputs))


def test_same_everything_is_the_same_key(tmp_path, stage_code):
    assert key(tmp_path) == key(tmp_path)


def test_text_12_one_changed_byte_with_size_and_time_kept_is_another_key(tmp_path, stage_code):
    before = key(tmp_path, text="春天a")
    file = tmp_path / "corpus.txt"
    stat = file.stat()
    file.write_text("春天b")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert key(tmp_path, text="春天b") != before


def test_config_input_and_code_each_change_the_key(tmp_path, stage_code, monkeypatch):
    keys = {key(tmp_path), key(tmp_path, mlm_probability=0.2), key(tmp_path, digest="b")}
    (stage_code / "made_up_helper.py").write_text("def scale(n):\n    return n + 1\n")
    keys.add(key(tmp_path))
    fingerprint.forget_code()
    monkeypatch.setattr(fingerprint.importlib.metadata, "version", lambda name: "0.0.1")
    keys.add(key(tmp_path))
    assert len(keys) == 5


def test_two_files_that_swap_content_change_the_key(tmp_path):
    class Two(StageConfig):
        def external_files(self) -> list[Path]:
            return [tmp_path / "train", tmp_path / "test"]

    def both(train: str, test: str) -> str:
        (tmp_path / "train").write_text(train)
        (tmp_path / "test").write_text(test)
        return fingerprint.key_of(fingerprint.identity_of("x", "components.contract", Two(), {}))

    assert both("1", "2") != both("2", "1")


def test_comments_docstrings_and_layout_do_not_change_the_key(tmp_path, stage_code):
    before = key(tmp_path)
    file = stage_code / "made_up_stage.py"
    file.write_text(file.read_text().replace("# comment", "# another").replace("'Doubles.'", "'Doubles it.'") + "\n\n")
    assert key(tmp_path) == before


def test_reachable_code_follows_imports_and_names_libraries(stage_code):
    sources, libraries = fingerprint.reachable_code("components.made_up_stage")
    assert {"components.made_up_stage", "components.made_up_helper", "components.errors"} <= {
        name for name, _ in sources
    }
    assert libraries == ("numpy",)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.txt.*No such file"):
        fingerprint.identity_of("x", "components.contract", Config(path=str(tmp_path / "nowhere.txt")), {})


def test_differences_are_said_in_words():
    stored = {"config": {"mlm_probability": 0.15, "seed": 0}, "inputs": {"corpus": ["a"]}, "source": {"m": "1"}}
    wanted = {
        "config": {"mlm_probability": 0.2, "seed": 0},
        "inputs": {"corpus": ["b"]},
        "source": {"m": "1", "n": "2"},
    }
    assert fingerprint.differences(stored, wanted) == [
        "config.mlm_probability 0.15 → 0.2",
        "input corpus changed",
        "code n added",
    ]


def test_the_most_similar_stored_result_explains_the_miss():
    wanted = {"config": {"a": 1, "b": 2}}
    manifests = [{"identity": {"config": {"a": 5, "b": 6}}}, {"identity": {"config": {"a": 1, "b": 3}}}]
    assert fingerprint.why_not_reused(manifests, wanted) == ["config.b 3 → 2"]
    assert fingerprint.why_not_reused([], wanted) == []


def test_no_two_threads_parse_at_once(monkeypatch):
    """Python 3.11's parser fails at random when two threads build trees at once."""
    parse, running, most = fingerprint.ast.parse, [], []

    def watched(text):
        running.append(1)
        most.append(len(running))
        time.sleep(0.002)
        tree = parse(text)
        running.pop()
        return tree

    monkeypatch.setattr(fingerprint.ast, "parse", watched)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            fingerprint.forget_code()
            asked = [("components.bert.stage", "pretrain_bert"), ("components.rnn.stage", "train_recurrent")] * 5
            list(pool.map(lambda names: fingerprint.stage_inputs(*names), asked))
            list(pool.map(fingerprint.reachable_code, ["components.tokenizer.stage", "components.errors"] * 5))
    assert set(most) == {1}
