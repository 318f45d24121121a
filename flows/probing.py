"""Probes of what each rung's encoder knows, as stages: one run for every probe and encoder."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from components.artifacts import Artifact
from components.contract import StageConfig, Strings
from components.errors import ConfigError
from components.probes.meaning_config import SenseProbeConfig, SimilarityProbeConfig
from components.probes.structure_config import (
    ClozeProbeConfig,
    LookProbeConfig,
    RecallProbeConfig,
    WordOrderProbeConfig,
)
from flows import stages
from flows.settings import with_fields
from flows.tracking import Ladder, Stage

PROBES: dict[str, Stage] = {
    "similarity": stages.probe_similarity,
    "senses": stages.probe_senses,
    "word_order": stages.probe_word_order,
    "cloze": stages.probe_cloze,
    "look": stages.probe_look,
    "recall": stages.probe_recall,
}
"""In the order of the report."""
WITHOUT_ENCODER = {"recall"}
"""Probes that train networks of their own."""
WITH_CORPUS = {"cloze"}
"""Probes that read held-out text of the corpus."""


class ProbesSection(StageConfig):
    """Which probes are run; one that is empty (null) is left out, {} runs it as it stands."""

    similarity: SimilarityProbeConfig | None = None
    """Similarity of single words."""
    senses: SenseProbeConfig | None = None
    """One word with two senses, in context."""
    word_order: WordOrderProbeConfig | None = None
    """Who bit whom."""
    cloze: ClozeProbeConfig | None = None
    """Hidden pieces, next sentence, minimal pairs."""
    look: LookProbeConfig | None = None
    """Pictures of gates and attention."""
    recall: RecallProbeConfig | None = None
    """How far back RNN, LSTM, BiLSTM and BERT of one size remember."""
    rungs: Strings | None = None
    """Names of the rungs whose encoders are probed; empty means all."""

    def check(self, rungs: list[str], language: Literal["zh", "en"]) -> None:
        """Refuse names that are not in the ladder, and sections that contradict its language.

        Raises:
            ConfigError: With the name and what would fit.
        """
        if unknown := sorted(set(self.rungs or ()) - set(rungs)):
            raise ConfigError(f"probes.rungs names {unknown}, which this ladder has not; it has {rungs}")
        self.chosen(language)

    def chosen(self, language: Literal["zh", "en"]) -> dict[str, StageConfig]:
        """The settings of each probe that is run, in the language of the ladder."""
        given: dict[str, Any] = {name: getattr(self, name) for name in PROBES}
        return {
            name: with_fields(config, f"probes.{name}", language=language)
            for name, config in given.items()
            if config is not None
        }


class Probing(NamedTuple):
    """One probe of one rung's encoder."""

    probe: str
    rung: str | None
    """None for a probe that trains networks of its own."""


def planned_probes(section: ProbesSection, rungs: list[str]) -> list[Probing]:
    """Every probe of every chosen rung."""
    chosen = [rung for rung in rungs if section.rungs is None or rung in section.rungs]
    return [
        Probing(name, rung)
        for name in PROBES
        if getattr(section, name) is not None
        for rung in ([None] if name in WITHOUT_ENCODER else chosen)
    ]


def run_probe(
    probing: Probing, config: StageConfig, encoder: Artifact | None, corpus: Artifact, execution: Ladder
) -> Artifact:  # fmt: skip
    """Run one probe.

    Args:
        probing: Which.
        config: Its settings.
        encoder: The rung's encoder; None for a probe that takes none.
        corpus: For the probes that read held-out text.
        execution: The ladder.
    """
    tags = {"probe": probing.probe, **({} if probing.rung is None else {"rung": probing.rung})}
    held_out = corpus if probing.probe in WITH_CORPUS else None
    return PROBES[probing.probe](execution, config, tags=tags, encoder=encoder, corpus=held_out)
