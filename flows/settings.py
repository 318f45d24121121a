"""Flow parameters: as plain JSON for the record, and the fields that the flow itself decides for a stage."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import ValidationError

from components.contract import StageConfig
from components.errors import ConfigError

Config = TypeVar("Config", bound=StageConfig)


def with_fields(config: Config, section: str, **decided: Any) -> Config:
    """A checked copy of ``config`` with the fields that rung, seed or language decide.

    Raises:
        ConfigError: The user set such a field in its section to another value, which would otherwise be ignored.
    """
    for name in config.model_fields_set & set(decided):
        if getattr(config, name) != decided[name]:
            raise ConfigError(
                f"{section}.{name} is {getattr(config, name)!r}, but this run decides it ({decided[name]!r}). "
                f"Remedy: remove {section}.{name}; rungs, seeds and language set it."
            )
    return overridden(config, decided)


def overridden(config: Config, values: dict[str, Any]) -> Config:
    """A checked copy of ``config`` with a rung's own values in place of the section's.

    Raises:
        ConfigError: The values do not fit each other.
    """
    try:
        return type(config).model_validate({**config.model_dump(exclude_unset=True), **values})
    except ValidationError as error:
        reasons = "; ".join(f"{'.'.join(map(str, item['loc']))} {item['msg']}" for item in error.errors())
        raise ConfigError(f"{type(config).__name__} with {values}: {reasons}") from error


def json_values(parameters: dict[str, Any]) -> dict[str, Any]:
    """Flow parameters as plain JSON values."""
    encoded = json.dumps(
        parameters, default=lambda value: value.model_dump(mode="json", by_alias=True), ensure_ascii=False
    )
    result: dict[str, Any] = json.loads(encoded)
    return result
