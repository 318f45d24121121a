"""The ``rungs`` command. Exit codes: 0 done, 1 failed, 2 bad input or usage.

Heavy libraries are imported by the command that needs them, so that ``rungs --help`` answers at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from components.errors import ConfigError, InputError, RungsError

DEFAULT_FILE = Path("pipelines.yaml")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Parse the command line, run the command and exit with its code."""
    options = _parser().parse_args(arguments)
    # A terminated run closes its MLflow run and its temporary server like an interrupted one.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = options.command(options)
    except (InputError, ConfigError) as error:
        _fail(f"bad input: {error}", 2)
    except RungsError as error:
        _fail(f"failed: {error}", 1)
    except KeyboardInterrupt:
        _fail("interrupted; run the same command again to go on where it stopped", 1)
    sys.exit(code or 0)


def _fail(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rungs", description="Climb the ladder of text representations on your own data."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = _command(commands, "run", run_pipeline, "run a deployment of pipelines.yaml in this process")
    run.add_argument("name", metavar="NAME", help="deployment, see `rungs list`")
    run.add_argument(
        "--set", action="append", default=[], metavar="SECTION.FIELD=VALUE", help="change a parameter; may be repeated"
    )
    _command(commands, "list", list_pipelines, "list the deployments and what they do")
    board = _command(commands, "leaderboard", show_leaderboard, "show the comparison of the newest ladder, or of RUN")
    board.add_argument("run", nargs="?", metavar="RUN", help="id of a run in the ladders experiment, or its beginning")
    board.add_argument("--json", action="store_true", help="print JSON")
    report = _command(commands, "report", write_stored_report, "write the report of the newest ladder, or RUN, again")
    report.add_argument("run", nargs="?", metavar="RUN", help="id of a run in the ladders experiment, or its beginning")
    report.add_argument("--output", type=Path, default=Path("report"), help="folder to write to (default report)")
    report.add_argument("--language", choices=("en", "zh"), help="default: the one that the ladder was run with")
    report.add_argument("--open", action="store_true", help="open the page in the browser")
    interface = _command(commands, "ui", serve_ui, "open the MLflow UI over the same store, on this machine only")
    interface.add_argument("--port", type=int, default=5000, help="port on 127.0.0.1 (default 5000)")
    _command(commands, "doctor", diagnose, "check versions, store, database and hardware, with remedies")
    return parser


def _command(commands: Any, name: str, function: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(command=function)
    if name in {"run", "list", "doctor"}:
        parser.add_argument("--file", type=Path, default=DEFAULT_FILE, help="pipelines file (default pipelines.yaml)")
    return parser


def run_pipeline(options: argparse.Namespace) -> int:
    """``rungs run``: check everything, then run the flow with a Prefect API around it."""
    from flows.environment import open_home

    home = open_home()
    # In this process the stages speak for themselves; Prefect's own log lines go to its database.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    from flows.temporary_server import prefect_api

    with prefect_api(home) as ready:
        flow, parameters = _chosen_pipeline(options)
        with ready:
            flow.with_options(flow_run_name=options.name)(**parameters)
    print("\nThe verdict and its evidence: rungs report --open\nCompare in the browser: rungs ui")
    print(f"Show again: rungs leaderboard\nStored in {home.root}")
    return 0


def _chosen_pipeline(options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from flows.pipelines import check_parameters, load_pipelines, set_field

    deployments = load_pipelines(options.file)
    if options.name not in deployments:
        remedy = f"one of {', '.join(deployments)}"
        raise InputError(f"no deployment {options.name!r}", file=options.file, remedy=remedy)
    deployment = deployments[options.name]
    parameters = deployment.parameters
    for assignment in options.set:
        parameters = set_field(parameters, assignment)
    check_parameters(deployment, parameters, "--set")
    return deployment.load_flow(), parameters


def list_pipelines(options: argparse.Namespace) -> int:
    """``rungs list``."""
    from flows.environment import open_home

    open_home()
    from flows.pipelines import load_pipelines

    for name, deployment in load_pipelines(options.file).items():
        print(f"{name:<12} {deployment.entrypoint:<24} {deployment.description}")
    return 0


def show_leaderboard(options: argparse.Namespace) -> int:
    """``rungs leaderboard``."""
    import json

    from flows.environment import open_home
    from flows.stored_ladders import find_stored, stored_json

    home = open_home()
    run_id = find_stored(home, options.run)
    board = stored_json(home, run_id, "leaderboard.json")
    if options.json:
        print(json.dumps(board, ensure_ascii=False, indent=1))
        return 0
    from flows.leaderboard_views import print_leaderboard
    from flows.reporting import stored_texts

    print_leaderboard(board, stored_texts(home, run_id))
    return 0


def write_stored_report(options: argparse.Namespace) -> int:
    """``rungs report``."""
    from flows.environment import open_home
    from flows.stored_ladders import find_stored, stored_json

    home = open_home()
    run_id = find_stored(home, options.run)
    from components.report.stage import write_report
    from flows.reporting import SOURCES_FILE, open_sources

    sources = stored_json(home, run_id, SOURCES_FILE)
    language = options.language or sources["run"]["parameters"]["report"]["language"]
    write_report(open_sources(sources, home.store), options.output, language=language)
    page = (options.output / "report.html").resolve()
    print(f"Written: {page}")
    if options.open:
        import webbrowser

        webbrowser.open(page.as_uri())
    return 0


def serve_ui(options: argparse.Namespace) -> int:
    """``rungs ui``."""
    from flows.environment import open_home
    from flows.interface import serve

    return serve(open_home(), options.port)


def diagnose(options: argparse.Namespace) -> int:
    """``rungs doctor``."""
    from flows.doctor import report
    from flows.environment import open_home

    return report(open_home(), options.file)
