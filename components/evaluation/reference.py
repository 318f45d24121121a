"""What scoring knows besides gold items and predictions."""

from __future__ import annotations

from dataclasses import dataclass

from components.text.sentences import Language


@dataclass(frozen=True)
class Reference:
    """Names, language and training entities that a task's scores refer to; each task uses what it needs."""

    labels: tuple[str, ...] = ()
    """Classes or entity types, each with its own columns of counts."""
    language: Language = "zh"
    """Whose definition scores an answer."""
    seen: frozenset[tuple[str, str]] = frozenset()
    """Surface and type of the entities in the training split."""
