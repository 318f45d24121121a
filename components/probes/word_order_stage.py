"""Probe: does an encoder see the order of words?"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from components.contract import LogMetrics, Metrics, ignore_metrics
from components.encoders.bag_of_words import BagOfWords, load_bag_of_words
from components.encoders.recurrent import load_recurrent
from components.encoders.static import WordVectors, load_word_vectors
from components.encoders.transformer import load_transformer
from components.formats import read_encoder_card
from components.probes.curves import draw_bars, picture_language
from components.probes.intervals import Share, binomial_share
from components.probes.order_models import BertClassifier, OrderTask, RecurrentClassifier, fit_linear, learn_order
from components.probes.probe_file import (
    Figure,
    Findings,
    Table,
    percent,
    say,
    table,
    write_findings,
    write_not_meaningful,
)
from components.probes.structure_config import WordOrderProbeConfig
from components.probes.word_order import (
    DROPPED,
    EQUIVARIANCE_TOLERANCE,
    OrderPair,
    labelled,
    meetings,
    permutation_difference,
    read_order_list,
    split_pairs,
    usable_pairs,
    without_positions,
)
from components.text.sentences import Language
from components.text.vocabulary import UNK_ID

CHANCE = 0.5
LEAST_PAIRS, LEAST_MEETINGS = 20, 4
"""Fewer pairs of sentences, or of words, than this say nothing."""
_NAMES = {
    "order_accuracy": ("encoder", "编码器"),
    "order_accuracy_without_positions": ("without positions", "去掉位置嵌入"),
}
_REASONS = {
    "other_units": ("words give other units in the other order", "换序后切分不同"),
    "unknown_word": ("unknown word", "未知词"),
    "too_long": ("longer than the encoder's positions", "超过编码器的位置数"),
}


@dataclass
class _Outcome:
    """Accuracies by the name of what was trained, and what else was measured."""

    num_pairs: int
    dropped: dict[str, int]
    shares: dict[str, Share] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=dict)


@dataclass(frozen=True)
class _Halves:
    """The pairs to learn from and those to be tested on."""

    train: list[OrderPair]
    test: list[OrderPair]

    def share(self, predicted: NDArray[np.int64]) -> Share:
        """Accuracy over the tested sentences, whose labels alternate, with an interval over the meetings of two words.

        The sentences of one meeting are right or wrong together, so that they count as one.
        """
        value, number = float((predicted == np.arange(len(predicted)) % 2).mean()), len(meetings(self.test))
        bound = binomial_share(value * number, number)
        return Share(value, bound.low, bound.high, number)


def probe_word_order(
    config: WordOrderProbeConfig, *, encoder: Path, out_dir: Path, log_metrics: LogMetrics = ignore_metrics
) -> Metrics:
    """Let the encoder learn who acts on whom from sentences that differ in order alone.

    A copy of a recurrent encoder or BERT is trained as a whole, BERT once more with its position embeddings set to
    zero; bags of words and averaged word vectors get a linear head. Tested are pairs of words that never met in
    training; the interval counts those. A bag of word n-grams or character n-grams sees the order within a gram, and
    may rightly come out above chance.

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
        dropped = ", ".join(f"{_REASONS[name][0]}: {number}" for name, number in outcome.dropped.items() if number)
        dropped_zh = "，".join(f"{_REASONS[name][1]}：{number}" for name, number in outcome.dropped.items() if number)
        write_not_meaningful(
            out_dir, "word_order", family, title, language=config.language,
            en=f"Only {outcome.num_pairs} of {len(pairs)} pairs of sentences can be used ({dropped}): too few to learn "
            "from and to test.",
            zh=f"{len(pairs)} 个句对中只有 {outcome.num_pairs} 个可用（{dropped_zh}）：不足以学习和测试。",
        )  # fmt: skip
        return {}
    findings = _findings(config, outcome, len(pairs), out_dir)
    return write_findings(out_dir, "word_order", family, title, findings, language=config.language)


def _halves(
    config: WordOrderProbeConfig, kept: list[OrderPair], dropped: dict[str, int]
) -> tuple[_Outcome, _Halves | None]:
    """Both halves of the kept pairs; None where they are too few."""
    outcome = _Outcome(len(kept), dropped)
    if len(kept) < LEAST_PAIRS or len(meetings(kept)) < LEAST_MEETINGS:
        return outcome, None
    return outcome, _Halves(*split_pairs(kept, config.test_share, config.seed))


def _task(
    config: WordOrderProbeConfig, halves: _Halves, encode: Callable[[str], list[int]], learning_rate: float
) -> OrderTask:
    train, test = labelled(halves.train), labelled(halves.test)
    rate = learning_rate if config.learning_rate is None else config.learning_rate
    return OrderTask(
        [encode(text) for text in train[0]], train[1], [encode(text) for text in test[0]],
        config.num_train_steps, config.batch_size, rate, config.seed,
    )  # fmt: skip


def _usable(
    config: WordOrderProbeConfig,
    pairs: list[OrderPair],
    encode: Callable[[str], list[int]],
    unknown: int,
    max_length: int | None = None,
) -> tuple[_Outcome, _Halves | None]:
    kept, dropped = usable_pairs(
        pairs, lambda text: [str(index) for index in encode(text)], lambda pair: unknown in encode(pair.straight),
        max_length=max_length,
    )  # fmt: skip
    return _halves(config, kept, dropped)


def _bert(config: WordOrderProbeConfig, encoder: Path, pairs: list[OrderPair]) -> _Outcome:
    loaded = load_transformer(encoder)
    model, tokenizer = loaded.model, loaded.tokenizer
    for layer in (module for module in model.modules() if isinstance(module, torch.nn.Dropout)):
        layer.p = 0.0

    def encode(text: str) -> list[int]:
        return list(tokenizer(text)["input_ids"])

    outcome, halves = _usable(config, pairs, encode, tokenizer.unk_token_id, model.config.max_position_embeddings)
    if halves is None:
        return outcome
    task = _task(config, halves, encode, min(1e-3, 2e-5 * (768 / model.config.hidden_size) ** 2))
    blind, row = without_positions(model), torch.tensor([task.test_ids[0]])
    for name, part in (("", model), ("_without_positions", blind)):
        outcome.metrics[f"order_permutation_difference{name}"] = permutation_difference(part, row, config.seed + 1)
    for name, part in (("order_accuracy", copy.deepcopy(model)), ("order_accuracy_without_positions", blind)):
        torch.manual_seed(config.seed)
        outcome.shares[name] = halves.share(learn_order(BertClassifier(part), task))
    return outcome


def _recurrent(config: WordOrderProbeConfig, encoder: Path, pairs: list[OrderPair]) -> _Outcome:
    model = load_recurrent(encoder)
    outcome, halves = _usable(config, pairs, model.encode, UNK_ID)
    if halves is not None:
        torch.manual_seed(config.seed)
        task = _task(config, halves, model.encode, 5e-3)
        outcome.shares["order_accuracy"] = halves.share(learn_order(RecurrentClassifier(model), task))
    return outcome


def _bag(config: WordOrderProbeConfig, encoder: Path, pairs: list[OrderPair]) -> _Outcome:
    bag = (
        load_word_vectors(encoder) if read_encoder_card(encoder)["family"] == "word2vec" else load_bag_of_words(encoder)
    )
    split, knows = (bag.split, _known(bag)) if isinstance(bag, WordVectors) else (bag.segmenter.segment, _known(bag))
    # What a bag makes of a sentence depends on the two words that change places: only they must be known.
    kept, dropped = usable_pairs(
        pairs, split, lambda pair: not all(knows(unit) for word in (pair.first, pair.second) for unit in split(word))
    )
    outcome, halves = _halves(config, kept, dropped)
    if halves is not None:
        train, test = labelled(halves.train), labelled(halves.test)
        features = bag.transform(train[0]), train[1], bag.transform(test[0])
        outcome.shares["order_accuracy"] = halves.share(fit_linear(*features))
    return outcome


def _known(bag: WordVectors | BagOfWords) -> Callable[[str], bool]:
    """Whether something of a unit has a vector or a feature."""
    if isinstance(bag, WordVectors):
        return lambda unit: bool(bag.rows([unit]))
    if bag.settings.analyzer.startswith("char"):
        return lambda unit: bool(bag.transform([unit]).nnz)
    prefix = "word:" if bag.settings.analyzer == "word_char" else ""
    names = (name.removeprefix(prefix) for name in bag.features if name.startswith(prefix))
    units = {unit for name in names for unit in name.split(" ")}
    return lambda unit: (unit.lower() if bag.settings.lowercase else unit) in units


def _findings(config: WordOrderProbeConfig, outcome: _Outcome, num_all: int, out_dir: Path) -> Findings:
    written = picture_language(config.language)
    bars = {say(written, *_NAMES[name]): share for name, share in outcome.shares.items()}
    draw_bars(
        bars, out_dir / "word_order.png", title=say(written, "Who bit whom (dashes: chance)", "谁咬了谁（虚线：随机）"),
        y=say(written, "accuracy", "准确率"), levels=dict.fromkeys(bars, CHANCE),
    )  # fmt: skip
    caption = say(
        config.language,
        "How often the encoder tells who acts on whom, with 95 % intervals; dashes: guessing",
        "编码器判断谁对谁做了什么的准确率及 95 % 区间；虚线：随机猜测",
    )
    figures = [Figure("word_order.png", caption)]
    metrics = {**outcome.metrics, **{name: share.value for name, share in outcome.shares.items()}}
    tables = _tables(config.language, outcome, num_all)
    return Findings(metrics, tuple(outcome.shares), tables, figures, _sentences(outcome))


def _tables(language: Language, outcome: _Outcome, num_all: int) -> list[Table]:
    columns = say(
        language, "model|accuracy [95 %]|chance|tested pairs of words", "模型|准确率 [95 %]|随机水平|测试的词对"
    ).split("|")
    rows = [
        [say(language, *_NAMES[name]), percent(share), "50 %", share.num_items]
        for name, share in outcome.shares.items()
    ]
    ledger = [
        [say(language, "kept", "保留"), outcome.num_pairs],
        *([say(language, *_REASONS[name]), outcome.dropped[name]] for name in DROPPED),
        [say(language, "all", "合计"), num_all],
    ]
    return [
        table(say(language, "Order task", "词序任务"), columns, rows),
        table(say(language, "Pairs of sentences", "句对"), ["", say(language, "pairs", "数量")], ledger),
    ]


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
                "zh": f"去掉位置嵌入后：{percent(blind)}；打乱输入后的输出与打乱的输出{same_zh}"
                f"（最大差 {difference:.0e}）。",
            }
        )
    return sentences
