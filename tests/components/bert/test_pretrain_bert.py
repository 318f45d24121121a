"""The whole stage on a small corpus: what it writes, reports and refuses."""

from __future__ import annotations

import hashlib
import json
import math
import shutil

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertForPreTraining, BertModel

from components.bert.config import PretrainingConfig
from components.bert.held_out import unigram_loss
from components.bert.stage import pretrain_bert
from components.errors import ConfigError, InputError, TrainingError
from components.formats import Document, ShardWriter, read_documents, read_encoder_card
from components.tokenizer.config import TokenizerConfig
from components.tokenizer.stage import train_tokenizer
from components.training import TrainingSettings
from components.vectors import write_vectors

SMALL = {
    "num_hidden_layers": 1,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "max_seq_length": 48,
    "batch_size": 8,
    "num_train_steps": 6,
    "warmup_steps": 2,
    "num_eval_rows": 16,
    "precision": "float32",
}


@pytest.fixture
def pretrain(bert_inputs, tmp_path):
    numbers = iter(range(100))

    def run(inputs=None, **settings):
        inputs = {"corpus": bert_inputs.corpus, "tokenizer": bert_inputs.tokenizer, **(inputs or {})}
        out_dir = tmp_path / f"out{next(numbers)}"
        out_dir.mkdir()
        return pretrain_bert(PretrainingConfig(**{**SMALL, **settings}), out_dir=out_dir, **inputs), out_dir

    return run


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_the_folder_loads_anywhere_and_stays_tied(pretrain, bert_inputs):
    metrics, folder = pretrain()
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "encoder.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
    }
    model, info = BertForPreTraining.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert model.cls.predictions.decoder.weight is model.bert.embeddings.word_embeddings.weight
    assert model.config.num_hidden_layers == 1
    assert sum(parameter.numel() for parameter in model.parameters()) == metrics["num_parameters"]
    assert isinstance(BertModel.from_pretrained(folder), BertModel)
    text = "春天来了"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer(text)["input_ids"] == AutoTokenizer.from_pretrained(bert_inputs.tokenizer)(text)["input_ids"]
    assert tokenizer.model_max_length == 48
    card = read_encoder_card(folder)
    assert (card["family"], card["objective"], card["max_seq_length"]) == ("bert", "mlm+nsp", 48)


def test_metrics_are_complete_and_finite(pretrain):
    logged = {}
    metrics, _ = pretrain({"log_metrics": lambda values, step=None: logged.setdefault(step, {}).update(values)})
    assert {
        "loss", "mlm_loss", "nsp_loss", "masked_accuracy", "nsp_accuracy", "val_mlm_loss", "val_nsp_loss",
        "val_masked_accuracy", "val_nsp_accuracy", "unigram_mlm_loss", "nats_below_unigram", "tokens_per_second",
        "train_step_share", "padding_share", "num_parameters", "num_train_tokens", "masked_share", "num_threads",
    } <= set(metrics)  # fmt: skip
    assert all(math.isfinite(value) for value in metrics.values())
    assert {
        "loss",
        "mlm_loss",
        "nsp_loss",
        "masked_accuracy",
        "nsp_accuracy",
        "tokens_per_second",
        "learning_rate",
    } <= (set(logged[6]))
    assert logged[6]["progress"] == 1.0
    assert metrics["nats_below_unigram"] == pytest.approx(metrics["unigram_mlm_loss"] - metrics["val_mlm_loss"])
    assert metrics["num_train_tokens"] <= 6 * 8 * 48
    assert metrics["padding_share"] < 0.05
    assert metrics["reproducible"] == 1.0
    assert metrics["loss"] == pytest.approx(metrics["mlm_loss"] + metrics["nsp_loss"])
    assert 0 < metrics["train_step_share"] <= 1


def test_masked_share_is_the_probability_of_the_config(pretrain):
    metrics, _ = pretrain(mlm_probability=0.37, num_train_steps=40)
    assert metrics["masked_share"] == pytest.approx(0.37, abs=0.02)


def test_same_seed_same_bytes_other_seed_other_weights(pretrain):
    (_, one), (_, two), (_, other) = pretrain(), pretrain(), pretrain(seed=1)
    assert digests(one) == digests(two)
    assert digests(one)["model.safetensors"] != digests(other)["model.safetensors"]


@pytest.mark.parametrize("settings", [{}, {"hidden_dropout_prob": 0.1, "masking": "whole_word"}])
def test_train_01_killed_and_resumed_equals_uninterrupted(pretrain, bert_inputs, tmp_path, monkeypatch, settings):
    inputs = {"segmented": bert_inputs.segmented}
    monkeypatch.setattr(
        "components.bert.stage.TrainingSettings",
        lambda **values: TrainingSettings(**values, checkpoint_every_steps=4, log_every_steps=1),
    )
    whole_log, parts_log = {}, {}
    keep = ("loss", "mlm_loss", "nsp_loss", "masked_accuracy", "learning_rate")

    def keeper(log, stop_at=None):
        def log_metrics(values, step=None):
            if step is not None:
                log[step] = {name: values[name] for name in keep}
            if step == stop_at and step is not None:
                raise KeyboardInterrupt

        return log_metrics

    # Steps reach into the second epoch, so that resuming has to find its plan again.
    settings = {**settings, "num_train_steps": 50}
    _, whole = pretrain({**inputs, "log_metrics": keeper(whole_log)}, **settings)
    checkpoints = {"checkpoint_dir": tmp_path / "checkpoints"}
    for stop_at in (7, 41):
        with pytest.raises(KeyboardInterrupt):
            pretrain({**inputs, **checkpoints, "log_metrics": keeper(parts_log, stop_at)}, **settings)
    metrics, parts = pretrain({**inputs, **checkpoints, "log_metrics": keeper(parts_log)}, **settings)
    assert metrics["num_steps_per_epoch"] < 40
    assert metrics["resumed_from_step"] == 40
    assert parts_log == whole_log
    assert digests(parts) == digests(whole)


def test_zero_steps_write_the_initial_weights_without_reading_any_text(pretrain, tmp_path):
    metrics, folder = pretrain({"corpus": tmp_path}, num_train_steps=0)
    assert metrics["num_train_steps"] == 0
    assert "tokens_per_second" not in metrics
    torch.manual_seed(0)
    expected = BertForPreTraining(BertConfig.from_pretrained(folder))
    loaded = BertForPreTraining.from_pretrained(folder)
    assert torch.equal(loaded.bert.embeddings.word_embeddings.weight, expected.bert.embeddings.word_embeddings.weight)


def test_held_out_figures_do_not_depend_on_seed_or_masking_rate(pretrain, bert_inputs):
    inputs = {"segmented": bert_inputs.segmented}
    variants = [{}, {"seed": 5}, {"mlm_probability": 0.4}, {"masking": "whole_word"}]
    plateaus = {pretrain(inputs, num_train_steps=1, **variant)[0]["unigram_mlm_loss"] for variant in variants}
    assert len(plateaus) == 1


def test_unigram_loss_by_hand():
    # Counts with one each added: 3, 1, 2 of 6.
    expected = -(math.log(3 / 6) + math.log(1 / 6)) / 2
    assert unigram_loss(np.array([0, 0, 2], np.int32), np.array([0, 1]), 3) == pytest.approx(expected)


def test_mlm_alone_reports_no_nsp(pretrain):
    metrics, folder = pretrain(nsp=False)
    assert not [name for name in metrics if "nsp" in name or "random_pair" in name]
    assert metrics["num_pairs"] == 0
    assert read_encoder_card(folder)["objective"] == "mlm"
    assert metrics["loss"] == metrics["mlm_loss"]


def test_clock_instead_of_steps(pretrain):
    metrics, _ = pretrain(num_train_steps=0, max_minutes=0.02)
    assert metrics["num_train_steps"] > 0
    assert metrics["reproducible"] == 0.0


def test_without_positions_word_order_means_nothing(pretrain):
    _, folder = pretrain(position_embeddings="none")
    model = BertModel.from_pretrained(folder).eval()
    assert not model.embeddings.position_embeddings.weight.any()
    with torch.no_grad():
        one, other = (model(torch.tensor([ids])).pooler_output for ids in ([2, 9, 8, 7, 3], [2, 7, 9, 8, 3]))
    assert torch.allclose(one, other, atol=1e-6)


def test_bfloat16_trains_and_keeps_float32_weights(pretrain):
    metrics, folder = pretrain(precision="bfloat16", num_train_steps=3)
    assert metrics["bfloat16"] == 1.0
    assert BertModel.from_pretrained(folder).dtype == torch.float32


def test_warm_start_sets_the_embeddings_of_matching_pieces(pretrain, bert_inputs, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(bert_inputs.tokenizer)
    words = tokenizer.convert_ids_to_tokens(range(5, 25))
    vectors = np.random.default_rng(0).normal(3.0, 2.0, size=(21, 32)).astype(np.float32)
    write_vectors(tmp_path / "vectors.txt", [*words, "unknown-word"], vectors)
    metrics, folder = pretrain({"embeddings": tmp_path}, num_train_steps=0, embedding_std=0.05)
    weight = BertModel.from_pretrained(folder).embeddings.word_embeddings.weight
    rows = weight[5:25].detach().numpy()
    assert rows.std() == pytest.approx(0.05, rel=1e-4)
    assert np.abs(rows.mean(axis=0)).max() < 1e-6
    centred = vectors[:20] - vectors[:20].mean(axis=0)
    assert np.corrcoef(rows.ravel(), centred.ravel())[0, 1] == pytest.approx(1.0)
    assert metrics["warm_started_share"] == pytest.approx(20 / len(tokenizer))
    _, cold = pretrain(num_train_steps=0)
    assert torch.equal(weight[25:], BertModel.from_pretrained(cold).embeddings.word_embeddings.weight[25:])


def test_vectors_that_do_not_fit_are_refused(pretrain, tmp_path):
    write_vectors(tmp_path / "vectors.txt", ["春"], np.ones((1, 30), np.float32))
    with pytest.raises(ConfigError, match="vectors of size 30, hidden_size is 32"):
        pretrain({"embeddings": tmp_path})
    write_vectors(tmp_path / "vectors.txt", ["zzz"], np.ones((1, 32), np.float32))
    with pytest.raises(InputError, match="none of the 1 words is a piece"):
        pretrain({"embeddings": tmp_path})


def test_init_from_continues_a_checkpoint(pretrain, bert_inputs, tmp_path):
    _, first = pretrain()
    free = {"hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None, "init_from": str(first)}
    metrics, second = pretrain(num_train_steps=0, **free)
    assert metrics["num_missing"] == 0
    assert digests(first)["model.safetensors"] == digests(second)["model.safetensors"]
    # The checkpoint brings its tokenizer, whatever vocabulary was trained beside it.
    other = tmp_path / "other"
    other.mkdir()
    train_tokenizer(
        TokenizerConfig(min_vocab_size=10, vocab_size=60, lowercase=False), corpus=bert_inputs.corpus, out_dir=other
    )
    _, again = pretrain({"tokenizer": other}, num_train_steps=0, **free)
    assert digests(second) == digests(again)
    files = PretrainingConfig(**{**SMALL, **free}).external_files()
    assert first / "model.safetensors" in files
    _, third = pretrain(**free)
    assert digests(first)["model.safetensors"] != digests(third)["model.safetensors"]


def test_init_from_without_nsp_head_reports_it_and_without_encoder_is_refused(pretrain, bert_inputs, tmp_path):
    vocab_size = len(AutoTokenizer.from_pretrained(bert_inputs.tokenizer))
    config = BertConfig(
        vocab_size=vocab_size, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    BertForMaskedLM(config).save_pretrained(tmp_path / "mlm")
    free = {"hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None}
    _, folder = pretrain(init_from=str(tmp_path / "mlm"), num_train_steps=0, **free)
    missing = json.loads((folder / "load_report.json").read_text())["missing"]
    assert "cls.seq_relationship.weight" in missing
    config.num_hidden_layers = 2
    config.save_pretrained(tmp_path / "mlm")
    with pytest.raises(TrainingError, match=r"encoder tensors are not in the checkpoint.*bert\.encoder\.layer\.1"):
        pretrain(init_from=str(tmp_path / "mlm"), **free)


def test_contradictions_are_refused_before_reading_anything(pretrain, tmp_path):
    with pytest.raises(ConfigError, match="whole_word needs the segmented corpus"):
        pretrain(masking="whole_word")
    with pytest.raises(ConfigError, match=r"holds no vectors\.txt"):
        pretrain({"embeddings": tmp_path / "nowhere"})
    for settings, message in [
        ({"hidden_size": 100, "num_attention_heads": 3}, "hidden_size 100 is no multiple of num_attention_heads 3"),
        ({"batch_size": 8, "gradient_accumulation_steps": 3}, "no multiple of"),
        ({"init_from": "x", "hidden_size": 64}, "sets all sizes"),
    ]:
        with pytest.raises(ValidationError, match=message):
            PretrainingConfig(**settings)


def test_segmented_corpus_of_other_text_is_refused(pretrain, bert_inputs, tmp_path):
    shutil.copytree(bert_inputs.segmented, tmp_path / "other")
    path = tmp_path / "other" / "train-00000.jsonl"
    lines = path.read_text().split("\n")
    path.write_text("\n".join([lines[1], lines[0], *lines[2:]]))
    with pytest.raises(InputError, match="segment this very corpus"):
        pretrain({"segmented": tmp_path / "other"}, masking="whole_word")


def write_documents(folder, train, validation):
    folder.mkdir()
    for split, documents in (("train", train), ("validation", validation)):
        writer = ShardWriter(folder, split)
        for number, sentences in enumerate(documents):
            writer.write(Document(f"text.txt:{number + 1}", tuple(sentences)))
        writer.close()
    return folder


def test_pre_02_pre_03_pre_08_unusable_corpora_are_refused_or_trained_without_nsp(pretrain, tmp_path):
    sentences = ["春天来了花开很好看。"] * 50
    good = [sentences[:4]] * 4
    cases = {
        "single": ([sentences], good, "NSP needs at least 2 documents, found 1"),
        "lines": ([[sentence] for sentence in sentences], good, "two or more sentences"),
        "held_out": (good, [sentences], "validation.*NSP needs at least 2 documents"),
        "none": ([], good, "no train text"),
    }
    for name, (train, validation, message) in cases.items():
        corpus = write_documents(tmp_path / name, train, validation)
        with pytest.raises(InputError, match=message):
            pretrain({"corpus": corpus})
        if train:
            metrics, _ = pretrain({"corpus": corpus}, nsp=False, num_train_steps=1)
            assert math.isfinite(metrics["loss"])


def test_pre_04_long_sentences_are_cut_and_counted(pretrain, tmp_path):
    documents = [["春天来了花开很好看" * 40, "今天天气。", "我们学习。", "北京好看。"]] * 4
    metrics, _ = pretrain({"corpus": write_documents(tmp_path / "long", documents, documents)}, max_seq_length=32)
    assert metrics["num_cut_sentences"] > 0


def test_pre_06_tiny_documents_never_give_nan(pretrain, tmp_path):
    documents = [["春", "天"], ["花", "开"]] * 10
    corpus = write_documents(tmp_path / "tiny", documents, documents)
    for seed in range(5):
        metrics, _ = pretrain({"corpus": corpus}, seed=seed, batch_size=1, num_train_steps=10, mlm_probability=0.05)
        assert math.isfinite(metrics["loss"])
        assert metrics["mlm_loss"] > 0


def test_train_07_divergence_names_step_documents_and_checkpoint(pretrain, tmp_path):
    with pytest.raises(TrainingError, match=r"step \d+: .*rows text\.txt:\d+.*last good checkpoint: none"):
        pretrain({"checkpoint_dir": tmp_path / "c"}, learning_rate=1e30, warmup_steps=0, num_train_steps=50)


def test_num_sentences_and_documents_are_those_of_the_corpus(pretrain, bert_inputs):
    metrics, _ = pretrain(num_train_steps=1)
    documents = list(read_documents(bert_inputs.corpus, "train"))
    assert metrics["num_documents"] == len(documents) == 120
    assert metrics["num_sentences"] == sum(len(document.sentences) for document in documents)
    assert metrics["random_pair_share"] == pytest.approx(0.5, abs=0.1)


def test_a_scratch_folder_is_not_left_behind(pretrain):
    _, folder = pretrain(num_train_steps=0)
    assert not [path for path in folder.iterdir() if path.is_dir()]


def test_eight_documents_are_overfitted_well_below_the_unigram_plateau(pretrain, bert_inputs, tmp_path):
    documents = [[*document.sentences[:3]] for document in list(read_documents(bert_inputs.corpus))[:8]]
    corpus = write_documents(tmp_path / "eight", documents, documents)
    metrics, _ = pretrain(
        {"corpus": corpus},
        num_hidden_layers=2,
        hidden_size=64,
        num_attention_heads=4,
        batch_size=16,
        num_train_steps=200,
        warmup_steps=10,
        learning_rate=5e-3,
        short_seq_probability=0.0,
    )
    assert metrics["nats_below_unigram"] > 0.5
    assert metrics["val_mlm_loss"] < metrics["unigram_mlm_loss"]


def test_positions_start_as_sinusoids_in_balance_with_the_tokens(pretrain, bert_inputs, tmp_path):
    cold = BertModel.from_pretrained(pretrain(num_train_steps=0)[1]).embeddings
    tokens, positions = cold.word_embeddings.weight[5:].detach(), cold.position_embeddings.weight.detach()
    # 0.02 at width 768, so 0.02 * sqrt(24) at width 32.
    assert float(tokens.std()) == pytest.approx(0.02 * 24**0.5, rel=0.05)
    assert float(positions.std()) == pytest.approx(0.02 * 24**0.5, rel=1e-4)
    nearness = torch.nn.functional.cosine_similarity(positions[20], positions[[20, 21, 22, 23]])
    assert nearness.tolist() == sorted(nearness.tolist(), reverse=True)
    words = AutoTokenizer.from_pretrained(bert_inputs.tokenizer).convert_ids_to_tokens(range(5, 25))
    vectors = np.random.default_rng(0).normal(size=(20, 32)).astype(np.float32)
    write_vectors(tmp_path / "vectors.txt", words, vectors)
    _, folder = pretrain({"embeddings": tmp_path}, num_train_steps=0, embedding_std=0.05)
    warm = BertModel.from_pretrained(folder).embeddings.position_embeddings.weight.detach()
    assert float(warm.std()) == pytest.approx(0.05, rel=1e-4)
    assert torch.allclose(warm / warm.std(), positions / positions.std(), atol=1e-5)
