"""Learning rates of head and encoder where the configuration leaves them open."""

from __future__ import annotations

import pytest

from components.finetuning.config import ClassificationConfig, NerConfig
from components.finetuning.families import BERT, RECURRENT
from components.finetuning.neural import _completed


def rates(family, config, hidden_size: int) -> tuple[float | None, float | None]:
    completed = _completed(config, family, hidden_size)
    return completed.learning_rate, completed.encoder_learning_rate


def test_the_head_of_bert_learns_faster_than_its_encoder():
    assert rates(BERT, NerConfig(), 768) == pytest.approx((8e-5, 2e-5))
    assert rates(BERT, NerConfig(), 64) == pytest.approx((4e-3, 1e-3))


def test_a_recurrent_encoder_starts_as_fresh_as_its_head():
    assert rates(RECURRENT, NerConfig(), 128) == pytest.approx((5e-3, 5e-3))


@pytest.mark.parametrize("family", [BERT, RECURRENT])
def test_a_given_rate_is_that_of_both_unless_the_encoder_has_its_own(family):
    assert rates(family, ClassificationConfig(learning_rate=1e-3), 256) == (1e-3, 1e-3)
    assert rates(family, ClassificationConfig(learning_rate=1e-3, encoder_learning_rate=1e-4), 256) == (1e-3, 1e-4)
    alone = rates(family, ClassificationConfig(encoder_learning_rate=1e-4), 256)
    assert alone == (pytest.approx(family.learning_rate(256) * family.head_factor), 1e-4)
