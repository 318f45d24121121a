"""Probe: does an encoder see the order of words?"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.bag_of_words import load_bag_of_words
from components.encoders.recurrent import load_recurrent
from components.encoders.static import load_word_vectors
from components.encoders.transformer import load_transformer
from components.formats import read_encoder_card
from components.probes.curves import draw_bars, picture_language
from components.probes.intervals import Share, binomial_share
from components.probes.order_models import BertClassifier, OrderTask, RecurrentClassifier, fit_linear, learn_order
from components.probes.probe_file import Findings, percent, say, table, write_findings, write_not_meaningful
from components.probes.structure_config import WordOrderProbeConfig
from components.probes.word_order import (
    EQUIVARIANCE_TOLERANCE,
    OrderPair,
    labelled,
    permutation_difference,
    read_order_list,
    split_pairs,
    usable_pairs,
    without_positions,
)
from components.text.vocabulary import UNK_ID

CHANCE = 0.5
LEAST_PAIRS = 20
"""Fewer pairs than this say nothing."""


class _Outcome:
    """Accuracies by the name of what was trained, and what else was measured."""

    def __init__(self, pairs: list[OrderPair], dropped: dict[str, int]) -> None:
        self.num_pairs, self.dropped = len(pairs), dropped
        self.shares: dict[str, Share] = {}
        self.metrics: Metrics = {}


def probe_word_order(
    config: WordOrderProbeConfig, *, encoder: Path, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Let the encoder learn who acts on whom from sentences that differ in order alone.

    A copy of a recurrent encoder or BERT is trained as a whole, BERT once more with its position embeddings set to
    zero; bags of words and averaged word vectors get a linear head. Tested are pairs of words that never met in
    training. The two sentences of a pair are right or wrong together, so the interval counts pairs. A bag of word
    n-grams or character n-grams sees the order within a gram, and may rightly come out above chance.

    Args:
        config: Word list and training.
        encoder: Any encoder artifact.
        out_dir: Receives ``probe.json`` and ``word_order.png``.
        log_metrics: Unused; the probe takes seconds.

    Returns:
        ``order_accuracy``, for BERT also ``order_accuracy_without_positions`` and the two differences under
        permutation.

    Raises:
        InputError: The word list cannot be used.
    """
    family = str(read_encoder_card(encoder)["family"])
    title = say(config.language, "Word order: who bit whom", "词序：谁咬了谁")
    pairs = read_order_list(Path(config.order_file) if config.order_file else None, config.language)
    outcome = {"bert": _bert, "recurrent": _recurrent}.get(family, _bag)(config, encoder, pairs)
    if not outcome.shares:
        why = f"{outcome.num_pairs} of {len(pairs)} pairs are usable (dropped: {outcome.dropped})"
        write_not_meaningful(
            out_dir, "word_order", family, title, language=config.language,
            en=f"Only {why}: the encoder knows too few of the words.",
            zh=f"可用的句对只有 {outcome.num_pairs}/{len(pairs)}：编码器认识的词太少。",
        )  # fmt: skip
        return {}
    findings = _findings(config, outcome, len(pairs), out_dir)
    return write_findings(out_dir, "word_order", family, title, findings)


def _prepare(
    config: WordOrderProbeConfig,
    pairs: list[OrderPair],
    encode: Callable[[str], list[int]],
    unknown: int,
    learning_rate: float,
) -> tuple[_Outcome, OrderTask | None]:
    kept, dropped = usable_pairs(pairs, lambda text: [str(i) for i in encode(text)], lambda unit: unit == str(unknown))
    outcome = _Outcome(kept, dropped)
    if len(kept) < LEAST_PAIRS:
        return outcome, None
    train, test = (labelled(part) for part in split_pairs(kept, config.test_share, config.seed))
    rate = learning_rate if config.learning_rate is None else config.learning_rate
    return outcome, OrderTask(
        [encode(text) for text in train[0]], train[1], [encode(text) for text in test[0]],
        config.num_train_steps, config.batch_size, rate, config.seed,
    )  # fmt: skip


def _share(predicted: np.ndarray) -> Share:
    """Accuracy over sentences, which alternate between labels 0 and 1, with an interval over pairs."""
    right = predicted == np.arange(len(predicted)) % 2
    value, num_pairs = float(right.mean()), len(predicted) // 2
    bound = binomial_share(value * num_pairs, num_pairs)
    return Share(value, min(bound.low, value), max(bound.high, value), num_pairs)


def _bert(config: WordOrderProbeConfig, encoder: Path, pairs: list[OrderPair]) -> _Outcome:
    loaded = load_transformer(encoder)
    model, tokenizer = loaded.model, loaded.tokenizer
    for layer in (module for module in model.modules() if isinstance(module, torch.nn.Dropout)):
        layer.p = 0.0
    rate = min(1e-3, 2e-5 * (768 / model.config.hidden_size) ** 2)

    def encode(text: str) -> list[int]:
        return list(tokenizer(text)["input_ids"])

    outcome, task = _prepare(config, pairs, encode, tokenizer.unk_token_id, rate)
    if task is None:
        return outcome
    blind = without_positions(model)
    row = torch.tensor([task.test_ids[0]])
    outcome.metrics["order_permutation_difference"] = permutation_difference(model, row, config.seed + 1)
    outcome.metrics["order_permutation_difference_without_positions"] = permutation_difference(
        blind, row, config.seed + 1
    )
    for name, part in (("order_accuracy", copy.deepcopy(model)), ("order_accuracy_without_positions", blind)):
        torch.manual_seed(config.seed)
        outcome.shares[name] = _share(learn_order(BertClassifier(part), task))
    return outcome


def _recurrent(config: WordOrderProbeConfig, encoder: Path, pairs: list[OrderPair]) -> _Outcome:
    model = load_recurrent(encoder)
    outcome, task = _prepare(config, pairs, model.encode, UNK_ID, 5e-3)
    if task is not None:
        torch.manual_seed(config.seed)
        outcome.shares["order_accuracy"] = _share(learn_order(RecurrentClassifier(model), task))
    return outcome


def _bag(config: WordOrderProbeConfig, encoder: Path, pairs: list[OrderPair]) -> _Outcome:
    if read_encoder_card(encoder)["family"] == "word2vec":
        vectors = load_word_vectors(encoder)
        transform, split = vectors.transform, vectors.split
    else:
        bag = load_bag_of_words(encoder)
        transform, split = bag.transform, bag.segmenter.segment
    kept, dropped = usable_pairs(pairs, split, lambda unit: False)
    outcome = _Outcome(kept, dropped)
    if len(kept) >= LEAST_PAIRS:
        train, test = (labelled(part) for part in split_pairs(kept, config.test_share, config.seed))
        outcome.shares["order_accuracy"] = _share(fit_linear(transform(train[0]), train[1], transform(test[0])))
    return outcome


def _findings(config: WordOrderProbeConfig, outcome: _Outcome, num_all: int, out_dir: Path) -> Findings:
    zh = {"order_accuracy": "编码器", "order_accuracy_without_positions": "去掉位置嵌入"}
    en = {"order_accuracy": "encoder", "order_accuracy_without_positions": "without positions"}
    written = picture_language(config.language)
    bars = {(zh if written == "zh" else en)[name]: share for name, share in outcome.shares.items()}
    draw_bars(
        bars, out_dir / "word_order.png", title=say(written, "Who bit whom", "谁咬了谁"),
        y=say(written, "accuracy", "准确率"), levels=dict.fromkeys(bars, CHANCE),
    )  # fmt: skip
    columns = [say(config.language, a, b) for a, b in (("model", "模型"), ("accuracy [95 %]", "准确率 [95 %]"),
               ("chance", "随机水平"), ("tested pairs", "测试句对"))]  # fmt: skip
    rows = [
        [say(config.language, en[name], zh[name]), percent(share), "50 %", share.num_items]
        for name, share in outcome.shares.items()
    ]
    ledger = [
        [say(config.language, "kept", "保留"), outcome.num_pairs],
        [
            say(config.language, "words give other units in the other order", "换序后切分不同"),
            outcome.dropped["other_units"],
        ],
        [say(config.language, "unknown word", "未知词"), outcome.dropped["unknown_word"]],
        [say(config.language, "all", "合计"), num_all],
    ]
    tables = [
        table(say(config.language, "Order task", "词序任务"), columns, rows),
        table(say(config.language, "Sentence pairs", "句对"), ["", say(config.language, "pairs", "数量")], ledger),
    ]
    metrics = {**outcome.metrics, **{name: share.value for name, share in outcome.shares.items()}}
    return Findings(metrics, tables, ["word_order.png"], _sentences(outcome))


def _sentences(outcome: _Outcome) -> list[dict[str, str]]:
    share = outcome.shares["order_accuracy"]
    sees_en = "sees the order" if share.low > CHANCE else "cannot be told from chance"
    sees_zh = "能看到词序" if share.low > CHANCE else "与随机猜测无法区分"
    sentences = [
        {
            "en": f"Who acts on whom: {percent(share)} against 50 % by chance; the encoder {sees_en}.",
            "zh": f"判断谁对谁做了什么：{percent(share)}，随机为 50 %；该编码器{sees_zh}。",
        }
    ]
    blind = outcome.shares.get("order_accuracy_without_positions")
    if blind is not None:
        difference = outcome.metrics["order_permutation_difference_without_positions"]
        equal = "equal" if difference <= EQUIVARIANCE_TOLERANCE else "not equal"
        same_zh = "相等" if difference <= EQUIVARIANCE_TOLERANCE else "不相等"
        sentences.append(
            {
                "en": f"Without position embeddings: {percent(blind)}, and a permuted input gives {equal} permuted "
                f"outputs (largest difference {difference:.0e}).",
                "zh": f"去掉位置嵌入后：{percent(blind)}；打乱输入，输出只是随之打乱且{same_zh}（最大差 {difference:.0e}）。",
            }
        )
    return sentences
