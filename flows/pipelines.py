"""``pipelines.yaml``: Prefect's deployments file, read strictly.

Prefect itself ignores a misspelt deployment field and accepts an unknown parameter name, so every field is checked
here against the flow it belongs to, with the line and the closest right name.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import typing
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from components.errors import InputError

Parameters = dict[str, Any]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Schedule(_Strict):
    """When a deployment runs. No ``active`` field: a deploy would undo a pause made in the dashboard."""

    slug: str
    cron: str
    timezone: str = "UTC"
    parameters: Parameters = {}


class ConcurrencyLimit(_Strict):
    """How many runs of a deployment may be active, and what happens to one too many."""

    limit: int = Field(ge=1)
    collision_strategy: Literal["ENQUEUE", "CANCEL_NEW"]


class WorkPool(_Strict):
    """Where workers pick runs up, when the file is deployed instead of served."""

    name: str
    work_queue_name: str | None = None
    job_variables: dict[str, Any] = {}


class Deployment(_Strict):
    """One deployment: a flow with parameters and, perhaps, schedules."""

    name: str
    entrypoint: str = Field(pattern=r"^flows\.[a-z_]+\.[a-z_]+$")
    description: str = ""
    version: str | None = None
    tags: list[str] = []
    parameters: Parameters = {}
    schedules: list[Schedule] = []
    concurrency_limit: ConcurrencyLimit | None = None
    work_pool: WorkPool | None = None
    enforce_parameter_schema: bool = True

    def load_flow(self) -> Any:
        """Import the flow that this deployment runs."""
        module, _, name = self.entrypoint.rpartition(".")
        return getattr(importlib.import_module(module), name)


class PipelinesFile(_Strict):
    """The whole file."""

    name: str = "rungs"
    prefect_version: str | None = Field(default=None, alias="prefect-version")
    definitions: dict[str, Any] = {}
    deployments: list[Deployment]


def load_pipelines(path: Path) -> dict[str, Deployment]:
    """Read a pipelines file and check every deployment against its flow.

    Returns:
        Deployments by name, in file order; parameters are as written.

    Raises:
        InputError: Not YAML, an unknown field, a wrong type or value; with file, line and a suggestion.
    """
    if not path.is_file():
        raise InputError("not found", file=path, remedy="run from the repository root, or give --file")
    try:
        text = path.read_text(encoding="utf-8")
        node, data = yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        raise InputError(f"not valid YAML: {error}", file=path, line=mark.line + 1 if mark else None) from error
    file = _validate(PipelinesFile, data, path, node, ())
    found: dict[str, Deployment] = {}
    for index, deployment in enumerate(file.deployments):
        if deployment.name in found:
            line = _line_of(node, ("deployments", index, "name"))
            raise InputError(f"deployment {deployment.name!r} appears twice", file=path, line=line)
        found[deployment.name] = deployment
        where = ("deployments", index, "parameters")
        _validate(parameters_model(deployment), deployment.parameters, path, node, where)
    return found


def parameters_model(deployment: Deployment) -> type[BaseModel]:
    """A strict pydantic model of a flow's parameters, made from the flow function's signature."""
    function = deployment.load_flow().fn
    hints = typing.get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        name: (hints[name], ... if parameter.default is inspect.Parameter.empty else parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
    }
    return create_model(function.__name__, __base__=_Strict, **fields)


def check_parameters(deployment: Deployment, parameters: Parameters, source: str) -> None:
    """Check parameters that did not come from the file, such as ``--set``.

    Raises:
        InputError: With the field and a suggestion; ``source`` takes the place of the file name.
    """
    _validate(parameters_model(deployment), parameters, source, None, ())


def set_field(parameters: Parameters, assignment: str) -> Parameters:
    """Apply one ``section.field=value`` to a copy of the parameters; the value is read as YAML.

    Raises:
        InputError: Not of that form, or the path leads through something that has no fields.
    """
    path, equals, text = assignment.partition("=")
    if not equals or not path:
        raise InputError(f"--set {assignment!r} is not of the form section.field=value", remedy="--set seeds=[0]")
    changed: Parameters = _set_path(parameters, path.split("."), yaml.safe_load(text), assignment)
    return changed


def _set_path(value: Any, names: list[str], new: Any, assignment: str) -> Any:
    name, *rest = names
    if isinstance(value, list):
        if not name.isdigit() or int(name) >= len(value):
            raise InputError(f"--set {assignment!r}: {name!r} is no position in a list of {len(value)}")
        changed = [*value]
        changed[int(name)] = _set_path(value[int(name)], rest, new, assignment) if rest else new
        return changed
    if not isinstance(value, dict):
        raise InputError(f"--set {assignment!r}: {value!r} has no field {name!r}")
    return {**value, name: _set_path(value.get(name, {}), rest, new, assignment) if rest else new}


def _validate(model: type[Any], data: Any, path: Path | str, node: yaml.Node | None, where: tuple[Any, ...]) -> Any:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        details = error.errors()[0]
        location = (*where, *details["loc"])
        message = f"{_dotted(location)}: {details['msg']}"
        if details["type"] != "extra_forbidden":
            message += f" (value {details['input']!r})" if details["type"] != "missing" else ""
            raise InputError(message, file=path, line=_line_of(node, location)) from error
        remedy = _suggestion(model, details["loc"])
        unknown = f"{_dotted(location)}: unknown field"
        raise InputError(unknown, file=path, line=_line_of(node, location), remedy=remedy) from error


def _dotted(location: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in location)


def _suggestion(model: type[BaseModel], location: tuple[Any, ...]) -> str:
    owner: Any = model
    for part in location[:-1]:
        owner = owner.model_fields[part].annotation if isinstance(part, str) else owner
        owner = _model_in(owner)
    names = list(owner.model_fields)
    close = difflib.get_close_matches(str(location[-1]), names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"fields are {', '.join(names)}"


def _model_in(annotation: Any) -> Any:
    """The model class inside an annotation such as ``list[Rung]`` or ``Rung | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := _model_in(part)) is not None), None)


def _line_of(node: yaml.Node | None, location: tuple[Any, ...]) -> int | None:
    """The 1-based line of the deepest part of ``location`` that the document has."""
    line = None
    for part in location:
        if isinstance(node, yaml.MappingNode):
            pairs = [(key, value) for key, value in node.value if key.value == str(part)]
            if not pairs:
                break
            line, node = pairs[0][0].start_mark.line + 1, pairs[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line
