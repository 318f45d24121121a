"""Documentation is true: paths exist, commands parse, YAML examples are accepted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from flows.cli import _parser
from flows.pipelines import load_pipelines

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "mlflow" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_linked_file_exists(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_every_command_is_one_of_ours():
    commands = [line.split("#")[0].strip() for block in blocks("bash") for line in block.splitlines() if line.strip()]
    assert len(commands) >= 7
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in commands:
        program, *words = shlex.split(command)
        if program == "make":
            assert re.search(rf"^{words[0]}:", makefile, flags=re.MULTILINE), command
        else:
            assert program == "rungs"
            assert _parser().parse_args(words).command


def test_own_data_and_added_rungs_are_accepted(tmp_path):
    own, rungs = blocks("yaml")
    file = yaml.safe_load("deployments:\n" + own)
    file["deployments"][0]["parameters"]["rungs"] += [{"name": "word2vec_skipgram", "encoder": "word2vec"}]
    file["deployments"][0]["parameters"]["rungs"] += yaml.safe_load(rungs)
    path = tmp_path / "pipelines.yaml"
    path.write_text(yaml.safe_dump(file), encoding="utf-8")
    assert list(load_pipelines(path)) == ["mine"]


def test_every_top_level_place_in_the_map_exists():
    for name in ("flows", "components", "pipelines.yaml", "mlflow", "tests", "README.md", "LICENSE", "CHANGELOG.md"):
        assert (ROOT / name).exists()
