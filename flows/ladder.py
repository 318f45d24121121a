"""The main job: raw text and labelled examples through every rung, to one comparison."""

from __future__ import annotations

from typing import Annotated, Literal

from prefect import flow
from pydantic import Field

from components.bag_of_words.config import BagOfWordsConfig
from components.bert.config import PretrainingConfig
from components.corpus.config import CorpusConfig
from components.datasets.config import AuditConfig
from components.evaluation.config import EvaluationConfig
from components.examples import TaskName
from components.rnn.config import RecurrentConfig
from components.text.segmentation import SegmenterConfig
from components.tokenizer.config import TokenizerConfig
from components.word2vec.config import Word2VecConfig
from flows.climb import climb
from flows.encoders import EncoderSettings
from flows.label_curve import LabelCurveSection
from flows.plan import ComparisonSection, LadderSettings, ReportSection
from flows.probing import ProbesSection
from flows.rungs import Rung
from flows.settings import json_values, with_fields
from flows.tasks import ClassificationSection, NerSection, QuestionAnsweringSection, Sections, chosen_tasks

Seed = Annotated[int, Field(ge=0, lt=2**31)]


@flow(name="ladder", persist_result=False)
def ladder(
    rungs: list[Rung],
    seeds: Annotated[list[Seed], Field(min_length=1)],
    tasks: Annotated[list[TaskName], Field(min_length=1)],
    language: Literal["zh", "en"] = "zh",
    warm_start: bool = True,
    classification: ClassificationSection = ClassificationSection(),
    ner: NerSection = NerSection(),
    question_answering: QuestionAnsweringSection = QuestionAnsweringSection(),
    audit: AuditConfig = AuditConfig(),
    corpus: CorpusConfig = CorpusConfig(),
    segmenter: SegmenterConfig = SegmenterConfig(),
    tokenizer: TokenizerConfig = TokenizerConfig(),
    bag_of_words: BagOfWordsConfig = BagOfWordsConfig(),
    word2vec: Word2VecConfig = Word2VecConfig(),
    recurrent: RecurrentConfig = RecurrentConfig(),
    pretraining: PretrainingConfig = PretrainingConfig(),
    evaluation: EvaluationConfig = EvaluationConfig(),
    comparison: ComparisonSection = ComparisonSection(),
    label_curve: LabelCurveSection | None = None,
    probes: ProbesSection = ProbesSection(),
    report: ReportSection = ReportSection(),
) -> str:
    """Climb the ladder: train every rung's encoder, fine-tune and evaluate it on every task, compare, report.

    Args:
        rungs: What to compare, a line each: a name, an encoder and what differs from the encoder's own section.
        seeds: Every rung is fine-tuned once per seed and task; a seed also chooses the labelled subset.
        tasks: Tasks to compare the rungs on.
        language: Language of corpus and labelled texts.
        warm_start: Start BERT's token embeddings from skip-gram vectors over the same tokens.
        classification: Data and training of text classification.
        ner: Data and training of named-entity recognition.
        question_answering: Data and training of extractive question answering.
        audit: What counts as a leak, and what happens to it.
        corpus: Raw text for everything that is trained without labels.
        segmenter: Word segmentation shared by all rungs.
        tokenizer: WordPiece vocabulary of BERT, and of every rung on NER and question answering.
        bag_of_words: One-hot and TF-IDF features.
        word2vec: CBOW and skip-gram vectors.
        recurrent: RNN, LSTM and GRU encoders.
        pretraining: BERT pretraining.
        evaluation: Scores and intervals.
        comparison: What makes one rung better than another, and which pairs isolate an ingredient.
        label_curve: Smaller numbers of labels to fine-tune with as well; empty leaves the curve out.
        probes: What to measure in each rung's encoder.
        report: How the report is written.

    Returns:
        Id of the aggregate MLflow run.
    """
    parameters = json_values(locals())
    sections: Sections = {"classification": classification, "ner": ner, "question_answering": question_answering}
    segmenter = with_fields(segmenter, "segmenter", language=language)
    encoders = EncoderSettings(segmenter, tokenizer, bag_of_words, word2vec, recurrent, pretraining, warm_start)
    corpus = with_fields(corpus, "corpus", language=language)
    evaluation = with_fields(evaluation, "evaluation", language=language)
    chosen = chosen_tasks(tasks, sections, language)
    stages = (encoders, audit, corpus, evaluation, comparison, label_curve, probes, report)
    return climb(LadderSettings(rungs, seeds, chosen, *stages, language), parameters)
