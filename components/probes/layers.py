"""Layers of an encoder by number and by name."""

from __future__ import annotations

from collections.abc import Sequence

from components.errors import ConfigError
from components.text.sentences import Language

_NAMES = {
    "features": ("word's features", "词特征"),
    "vectors": ("word vectors", "词向量"),
    "embeddings": ("embeddings, before any context", "嵌入（未读上下文）"),
}


def layer_index(layer: int, layers: Sequence[str]) -> int:
    """The position of a layer that may be counted from the end.

    Raises:
        ConfigError: There is no such layer.
    """
    if not -len(layers) <= layer < len(layers):
        raise ConfigError(
            f"layer {layer}: this encoder has the {len(layers)} layers {', '.join(layers)}. "
            f"Remedy: give a number from {-len(layers)} to {len(layers) - 1}."
        )
    return layer % len(layers)


def layer_name(layer: str, language: Language) -> str:
    """A layer's name for readers."""
    if layer in _NAMES:
        return _NAMES[layer][language == "zh"]
    number = layer.removeprefix("layer_")
    return f"第 {number} 层" if language == "zh" else f"layer {number}"
