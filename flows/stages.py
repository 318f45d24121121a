"""Every tracked stage, in pipeline order: the map of the system."""

from __future__ import annotations

from flows.models import log_model
from flows.tracking import Stage

# --- data ---
prepare_dataset = Stage("components.datasets.stage", "prepare_dataset", "Prepare labelled data", "data")
prepare_ner = Stage("components.datasets.ner_stage", "prepare_ner", "Prepare tagged data", "data")
prepare_question_answering = Stage(
    "components.datasets.qa_stage", "prepare_question_answering", "Prepare questions", "data"
)
audit_leaks = Stage("components.datasets.stage", "audit_leaks", "Audit duplicates and leaks", "data")
prepare_corpus = Stage(
    "components.corpus.stage", "prepare_corpus", "Prepare corpus", "data", several=frozenset({"held_out"})
)
segment_corpus = Stage("components.corpus.stage", "segment_corpus", "Segment corpus into words", "data")
train_tokenizer = Stage("components.tokenizer.stage", "train_tokenizer", "Train WordPiece tokenizer", "data")

# --- representations ---
fit_bag_of_words = Stage("components.bag_of_words.stage", "fit_bag_of_words", "Fit bag of words", "bag_of_words")
train_word2vec = Stage("components.word2vec.stage", "train_word2vec", "Train Word2Vec", "word2vec")
train_recurrent = Stage(
    "components.rnn.stage",
    "train_recurrent",
    "Train recurrent encoder",
    "recurrent",
    all_cores=lambda config: config.objective != "none",
)
pretrain_bert = Stage(
    "components.bert.stage",
    "pretrain_bert",
    "Pretrain BERT",
    "pretraining",
    # A tiny model gains next to nothing from a second thread; other stages use that core better.
    all_cores=lambda config: config.trains and config.model_sizes()["hidden_size"] >= 256,
)

# --- tasks ---
finetune = Stage("components.finetuning.stage", "finetune", "Fine-tune", "finetuning", log_model)
evaluate = Stage("components.evaluation.stage", "evaluate", "Evaluate", "evaluation")

# --- comparison ---
compare = Stage(
    "components.evaluation.comparison_stage",
    "compare",
    "Compare rungs",
    "comparison",
    several=frozenset({"predictions"}),
)

# --- probes ---
probe_similarity = Stage("components.probes.similarity_stage", "probe_similarity", "Probe", "probes")
probe_senses = Stage("components.probes.senses_stage", "probe_senses", "Probe", "probes")
probe_word_order = Stage("components.probes.word_order_stage", "probe_word_order", "Probe", "probes")
probe_cloze = Stage("components.probes.cloze_stage", "probe_cloze", "Probe", "probes")
probe_look = Stage("components.probes.look_stage", "probe_look", "Probe", "probes")
probe_recall = Stage("components.probes.recall_stage", "probe_recall", "Probe", "probes")

ALL = (
    prepare_dataset,
    prepare_ner,
    prepare_question_answering,
    audit_leaks,
    prepare_corpus,
    segment_corpus,
    train_tokenizer,
    fit_bag_of_words,
    train_word2vec,
    train_recurrent,
    pretrain_bert,
    finetune,
    evaluate,
    compare,
    probe_similarity,
    probe_senses,
    probe_word_order,
    probe_cloze,
    probe_look,
    probe_recall,
)
