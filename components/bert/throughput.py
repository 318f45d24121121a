"""Counting what passes through training: pieces, masks, and the rate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from components.bert.batches import Batch
from components.contract import LogMetrics
from components.formats import IGNORE_INDEX


@dataclass
class Throughput:
    """Counts of this attempt; the rate is measured between reports."""

    num_tokens: int = 0
    """Pieces without padding."""
    num_masked: int = 0
    """Pieces to predict."""
    num_maskable: int = 0
    """Pieces that are neither special nor padding."""
    _since: float = field(default_factory=time.perf_counter)
    _tokens_before: int = 0

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        self.num_tokens += batch.num_tokens
        self.num_masked += int((batch.labels != IGNORE_INDEX).sum())
        self.num_maskable += batch.num_maskable

    def rate(self) -> float:
        """Pieces a second since the last call."""
        now = time.perf_counter()
        rate = (self.num_tokens - self._tokens_before) / max(now - self._since, 1e-9)
        self._since, self._tokens_before = now, self.num_tokens
        return rate

    @property
    def masked_share(self) -> float:
        """Measured share of pieces to predict; near ``mlm_probability``."""
        return self.num_masked / max(self.num_maskable, 1)


def with_throughput(log_metrics: LogMetrics, meter: Throughput) -> LogMetrics:
    """Add ``tokens_per_second`` to whatever is logged."""

    def log(metrics: Mapping[str, float], *, step: int | None = None) -> None:
        log_metrics({**metrics, "tokens_per_second": meter.rate()}, step=step)

    return log
