"""``python -m bench.quality``: every rung on public data sets, three seeds, mean and interval, one table per set.

The sets are not part of the project; ``--data`` names the folder that holds them, under the names that
``groups`` lists. A group of sets shares its corpus and encoders; texts that a test set has in common with the
corpus are removed from the corpus. Run it alone: with another busy process, two OpenMP threads slow down sharply.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
Group = dict[str, dict[str, Any]]


def groups(data: Path) -> dict[str, Group]:
    """Sets by group and task, as the ladder's sections spell them."""

    def file(name: str) -> str:
        return str(data / name)

    shopping = {"train": file("sentiment-zh-online-shopping/online_shopping_6_cats.csv"), "text_column": "review"}
    eprstmt = {name: file(f"sentiment-zh-eprstmt-fewshot/{path}") for name, path in _EPRSTMT.items()}
    resume = {name: file(f"ner-zh-resume/{path}.char.bmes") for name, path in _RESUME.items()}
    cluener = {"train": file("ner-zh-cluener/train.jsonl"), "test": file("ner-zh-cluener/dev.jsonl")}
    msra = {"train": file("ner-zh-msra/train.txt"), "test": file("ner-zh-msra/test.txt")}
    cmrc = {"train": file("qa-zh-cmrc2018/cmrc2018_trial.json"), "test": file("qa-zh-cmrc2018/cmrc2018_dev.json")}
    drcd = {"train": file("qa-zh-drcd/DRCD_test.json"), "opencc": "t2s"}
    limit = {"num_validation_examples": 500, "num_test_examples": 2000}
    return {
        "shopping-cluener-cmrc": {
            "classification": {"source": "files", **shopping, **limit},
            "ner": {"source": "files", **cluener, "num_validation_examples": 500},
            "question_answering": {"source": "files", **cmrc, "num_validation_examples": 100},
        },
        "eprstmt-msra-drcd": {
            "classification": {"source": "files", **eprstmt, "text_column": "sentence"},
            "ner": {"source": "files", **msra, "num_validation_examples": 500},
            "question_answering": {"source": "files", **drcd, "num_validation_examples": 300},
        },
        "resume": {"ner": {"source": "files", **resume}},
    }


_EPRSTMT = {"train": "train_0.jsonl", "validation": "dev_0.jsonl", "test": "test_public.jsonl"}
_RESUME = {"train": "train", "validation": "dev", "test": "test"}
_CORPUS = ("raw-zh-wiki/*.txt", "raw-zh-cluecorpussmall/*.txt", "raw-zh-csl-abstracts/*.txt")


_TOKENIZER = {"vocab_size": 12_000}
"""The corpora together have more than 7,000 characters."""
_FINETUNING: dict[str, dict[str, Any]] = {
    "classification": {"max_seq_length": 128},
    "ner": {},
    # The longest questions of CMRC 2018 and DRCD have 60 characters.
    "question_answering": {"max_seq_length": 128, "max_question_length": 64, "doc_stride": 16},
}


def pipeline(name: str, group: Group, options: argparse.Namespace) -> dict[str, Any]:
    """The quick deployment's rungs and sizes on one group of sets."""
    budget = {"num_train_examples": options.num_train_examples, "num_epochs": options.num_epochs}
    file = yaml.safe_load((ROOT / "pipelines.yaml").read_text(encoding="utf-8"))
    deployment = next(item for item in file["deployments"] if item["name"] == "quick")
    parameters = deployment["parameters"]
    sections = {
        task: {"dataset": dataset, "finetuning": {**parameters[task]["finetuning"], **_FINETUNING[task], **budget}}
        for task, dataset in group.items()
    }
    files = [{"kind": "files", "path": str(options.data / path)} for path in _CORPUS]
    sources = [*parameters["corpus"]["sources"], *files]
    left_out = {"classification", "ner", "question_answering", "label_curve", "probes"}
    kept = {key: value for key, value in parameters.items() if key not in left_out}
    chosen = {
        **kept,
        **sections,
        "tasks": list(group),
        "seeds": options.seeds,
        "corpus": {"sources": sources},
        "tokenizer": _TOKENIZER,
    }
    if options.rungs:
        chosen["rungs"] = [rung for rung in chosen["rungs"] if rung["name"] in options.rungs]
    chosen["pretraining"] = {**chosen["pretraining"], **({"num_train_steps": options.steps} if options.steps else {})}
    return {"name": "rungs", "deployments": [{**deployment, "name": name, "parameters": chosen}]}


def climb(name: str, file: dict[str, Any], home: Path, assignments: list[str]) -> list[dict[str, Any]]:
    """Run one ladder in a process of its own; its leaderboard rows, told by group."""
    environment = {**os.environ, "RUNGS_HOME": str(home)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pipelines.yaml"
        path.write_text(yaml.safe_dump(file, allow_unicode=True), encoding="utf-8")
        changes = [word for assignment in assignments for word in ("--set", assignment)]
        command = [sys.executable, "-m", "flows", "run", name, "--file", str(path), *changes]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        show = [sys.executable, "-m", "flows", "leaderboard", "--json"]
        found = subprocess.run(show, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return [{"group": name, **row} for row in json.loads(found.stdout)["rows"]]


def table(rows: list[dict[str, Any]]) -> str:
    """All rows as Markdown."""
    lines = [
        "| sets | task | rung | metric | mean | 95 % interval | seeds | train s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        interval = f"{row['low']:.3f}–{row['high']:.3f}"
        score = f"{row['metric']} | {row['mean']:.3f} | {interval} | {row['num_seeds']} | {row['train_seconds']:.0f}"
        lines.append(f"| {row['group']} | {row['task']} | {row['rung']} | {score} |")
    return "\n".join(lines)


def main() -> None:
    """Run the chosen groups and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    parser.add_argument("--home", type=Path, help="folder to work in and keep (default: a temporary one)")
    parser.add_argument("--sets", nargs="+", help="groups to run (default: all)")
    parser.add_argument("--rungs", nargs="+", help="rungs to run (default: all of quick)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--num-train-examples", type=int, help="labelled budget per set (default: all of train)")
    parser.add_argument("--num-epochs", type=int, help="passes over the labelled examples (default: the family's)")
    parser.add_argument("--steps", type=int, help="pretraining steps (default: those of quick)")
    parser.add_argument("--set", nargs="+", default=[], help="fields to change, as for `rungs run`")
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    options = parser.parse_args()
    chosen = {name: group for name, group in groups(options.data).items() if not options.sets or name in options.sets}
    if not chosen:
        parser.error(f"no such sets; there are {', '.join(groups(options.data))}")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, group in chosen.items():
            rows += climb(name, pipeline(name, group, options), options.home or Path(temporary), options.set)
            if options.json:
                options.json.write_text(json.dumps({"rows": rows}, indent=1), encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
