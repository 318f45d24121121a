"""The design of docs/architecture.md, kept true."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted([*ROOT.glob("flows/**/*.py"), *ROOT.glob("components/**/*.py")])
STAGE_FOLDERS = (
    "datasets",
    "corpus",
    "tokenizer",
    "bag_of_words",
    "word2vec",
    "rnn",
    "bert",
    "finetuning",
    "evaluation",
)


def functions(path: Path) -> list[tuple[ast.FunctionDef, bool]]:
    """Every function of a file, and whether it is public: of a module or class, not inside another function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    scopes = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")]
    reachable = {id(node) for scope in scopes for node in scope.body}
    every = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [(node, id(node) in reachable and not node.name.startswith("_")) for node in every]


def test_mlflow_folder_holds_no_python_and_does_not_shadow_the_package():
    assert not list((ROOT / "mlflow").rglob("*.py"))
    code = "import mlflow, mlflow.tracking; print(mlflow.__file__)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "site-packages" in found.stdout


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_stays_small_documented_and_well_named(path):
    assert path.name not in {"utils.py", "common.py", "helpers.py", "base.py", "misc.py"}
    assert path.read_text(encoding="utf-8").count("\n") <= 300
    for function, public in functions(path):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        assert length <= 60, f"{function.name} has {length} lines"
        if public:
            assert ast.get_docstring(function), f"{function.name} has no docstring"


@pytest.mark.parametrize("folder", STAGE_FOLDERS)
def test_every_stage_folder_has_the_same_files(folder):
    assert {"config.py", "stage.py"} <= {path.name for path in (ROOT / "components" / folder).glob("*.py")}


def test_starting_a_flow_imports_no_training_library():
    heavy = ["torch", "transformers", "gensim", "sklearn", "datasets", "matplotlib", "pandas"]
    code = f"import sys, json, flows.ladder; print(json.dumps([name for name in {heavy} if name in sys.modules]))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout.splitlines()[-1]) == []


def test_help_imports_neither_prefect_nor_mlflow():
    code = "import sys, flows.cli; flows.cli._parser(); print([n for n in ('prefect', 'mlflow', 'torch') if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_map_lists_every_stage_once_and_each_exists():
    from flows import stages
    from flows.fingerprint import stage_inputs

    assert len({stage.function for stage in stages.ALL}) == len(stages.ALL) == 20
    for stage in stages.ALL:
        accepted = stage_inputs(stage.module, stage.function)
        assert {"out_dir", "log_metrics"} <= set(accepted)
        assert importlib.util.find_spec(stage.module) is not None


def test_no_pickle_in_product_code():
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for word in (
            "import pickle",
            "import joblib",
            "torch.save(",
            "torch.load(",
            "trust_remote_code=True",
            "yaml.load(",
        ):
            assert word not in text, f"{path}: {word}"
