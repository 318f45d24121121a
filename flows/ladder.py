"""The main job: raw text and labelled examples through every rung, to one comparison."""

from __future__ import annotations

from typing import Annotated, Literal

from prefect import flow
from pydantic import Field

from components.bag_of_words.config import BagOfWordsConfig
from components.bert.config import PretrainingConfig
from components.corpus.config import CorpusConfig
from components.datasets.config import AuditConfig, DatasetConfig
from components.evaluation.config import EvaluationConfig
from components.finetuning.config import FinetuningConfig
from components.rnn.config import RecurrentConfig
from components.text.segmentation import SegmenterConfig
from components.tokenizer.config import TokenizerConfig
from components.word2vec.config import Word2VecConfig
from flows import stages
from flows.encoders import EncoderSettings, EncoderTrainer, check_encoders
from flows.execution import ladder_execution
from flows.leaderboard import publish_leaderboard, run_rung
from flows.rungs import Rung, check_rungs
from flows.settings import json_values, with_fields

Seed = Annotated[int, Field(ge=0, lt=2**31)]


@flow(name="ladder", persist_result=False)
def ladder(
    rungs: list[Rung],
    seeds: Annotated[list[Seed], Field(min_length=1)],
    language: Literal["zh", "en"] = "zh",
    warm_start: bool = True,
    dataset: DatasetConfig = DatasetConfig(),
    audit: AuditConfig = AuditConfig(),
    corpus: CorpusConfig = CorpusConfig(),
    segmenter: SegmenterConfig = SegmenterConfig(),
    tokenizer: TokenizerConfig = TokenizerConfig(),
    bag_of_words: BagOfWordsConfig = BagOfWordsConfig(),
    word2vec: Word2VecConfig = Word2VecConfig(),
    recurrent: RecurrentConfig = RecurrentConfig(),
    pretraining: PretrainingConfig = PretrainingConfig(),
    finetuning: FinetuningConfig = FinetuningConfig(),
    evaluation: EvaluationConfig = EvaluationConfig(),
) -> str:
    """Climb the ladder: prepare text, train every rung's encoder, fine-tune and evaluate it, compare.

    Args:
        rungs: What to compare, a line each: a name, an encoder and what differs from the encoder's own section.
        seeds: Every rung is fine-tuned once per seed; a seed also chooses the labelled subset.
        language: Language of corpus and labelled texts.
        warm_start: Start BERT's token embeddings from skip-gram vectors over the same tokens.
        dataset: Labelled texts.
        audit: What counts as a leak, and what happens to it.
        corpus: Raw text for everything that is trained without labels.
        segmenter: Word segmentation shared by all rungs.
        tokenizer: WordPiece vocabulary of the BERT rungs.
        bag_of_words: One-hot and TF-IDF features.
        word2vec: CBOW and skip-gram vectors.
        recurrent: RNN, LSTM and GRU encoders.
        pretraining: BERT pretraining.
        finetuning: Task training, the same budget for every rung.
        evaluation: Scores and intervals.

    Returns:
        Id of the aggregate MLflow run.
    """
    parameters = json_values(locals())
    check_rungs(rungs, seeds)
    segmenter = with_fields(segmenter, "segmenter", language=language)
    corpus = with_fields(corpus, "corpus", language=language)
    budget = finetuning.num_train_examples
    encoders = (segmenter, tokenizer, bag_of_words, word2vec, recurrent, pretraining)
    settings = EncoderSettings(*encoders, num_train_examples=budget, warm_start=warm_start)
    check_encoders(settings, rungs, seeds)
    for seed in seeds:
        with_fields(finetuning, "finetuning", seed=seed)
    with ladder_execution(parameters, {"language": language, "task": finetuning.task}) as (execution, run):
        labelled = stages.audit_leaks(execution, audit, dataset=stages.prepare_dataset(execution, dataset))
        prepared = stages.prepare_corpus(execution, corpus, held_out=(labelled,))
        trainer = EncoderTrainer(execution, settings, tuple(rungs), prepared, labelled)
        results = [run_rung(rung, seeds, trainer, finetuning, evaluation) for rung in rungs]
        publish_leaderboard(run, results, dataset=labelled, corpus=prepared, evaluation=evaluation)
    return run.run_id
