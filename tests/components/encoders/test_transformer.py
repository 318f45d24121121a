"""Loading BERT: every tensor is accounted for, and an encoder that was not loaded is refused."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, BertModel, BertTokenizerFast

from components.encoders.transformer import load_pretraining_model, load_transformer
from components.encoders.wordpiece import save_wordpiece
from components.errors import InputError, TrainingError

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "春", "天", "来", "了"]
CONFIG = BertConfig(
    vocab_size=9, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, pad_token_id=0
)


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    BertForPreTraining(CONFIG).save_pretrained(tmp_path)
    save_wordpiece(BertTokenizerFast(vocab={piece: number for number, piece in enumerate(PIECES)}), tmp_path)
    return tmp_path


def rename(folder, change):
    tensors = load_file(folder / "model.safetensors")
    save_file(
        {change(name): tensor for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"}
    )


def test_everything_is_loaded_and_heads_are_unexpected(folder):
    loaded = load_transformer(folder)
    assert loaded.report.missing == ()
    assert set(loaded.report.loaded) == {name for name, _ in loaded.model.named_parameters()}
    assert "cls.predictions.bias" in loaded.report.unexpected
    assert all(name.startswith("cls.") for name in loaded.report.unexpected)
    assert not loaded.model.training
    assert loaded.tokenizer.tokenize("春天[MASK]")[:2] == ["春", "天"]
    reference = BertForPreTraining.from_pretrained(folder).bert.eval()
    ids = torch.tensor([[2, 5, 6, 3]])
    with torch.no_grad():
        assert torch.equal(loaded.model(ids).last_hidden_state, reference(ids).last_hidden_state)


def test_a_missing_pooler_is_reported_and_accepted(folder):
    BertForMaskedLM(CONFIG).save_pretrained(folder)
    report = load_transformer(folder).report
    assert report.missing == ("pooler.dense.bias", "pooler.dense.weight")
    assert report.to_json()["missing"] == list(report.missing)


def test_bare_bert_model_of_anyone_loads(folder):
    BertModel(CONFIG).save_pretrained(folder)
    report = load_transformer(folder).report
    assert (report.missing, report.unexpected) == ((), ())
    model, report = load_pretraining_model(folder)
    assert "cls.seq_relationship.weight" in report.missing
    assert model.cls.predictions.decoder.weight is model.bert.embeddings.word_embeddings.weight


def test_renamed_weights_are_refused_with_their_names(folder):
    rename(folder, lambda name: name.replace("encoder.layer", "encoder.layers"))
    with pytest.raises(
        TrainingError, match=r"32 of 37 encoder tensors.*encoder\.layer\.0.*not used: bert\.encoder\.layers"
    ):
        load_transformer(folder)
    # A share that the caller allows is reported, not refused.
    assert len(load_transformer(folder, minimum_loaded=0.1).report.missing) == 32


def test_one_missing_layer_is_refused(folder):
    rename(folder, lambda name: name.replace("layer.1.", "layer.7."))
    with pytest.raises(TrainingError, match=r"16 of 37 .*encoder\.layer\.1\."):
        load_transformer(folder)


def test_weights_of_another_shape_are_refused(folder):
    BertConfig(**{**CONFIG.to_dict(), "hidden_size": 32}).save_pretrained(folder)
    with pytest.raises(TrainingError, match="do not fit"):
        load_transformer(folder)


def test_a_folder_without_a_model_is_refused(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="no BERT model could be read"):
        load_transformer(folder)
    with pytest.raises(InputError, match="no tokenizer"):
        load_transformer(folder / "nowhere")


def test_truncated_weights_are_refused(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match="no BERT model could be read"):
        load_transformer(folder)


def test_a_tokenizer_larger_than_the_model_is_refused(folder):
    save_wordpiece(BertTokenizerFast(vocab={piece: number for number, piece in enumerate([*PIECES, "好"])}), folder)
    with pytest.raises(InputError, match="tokenizer has 10 pieces, the model 9"):
        load_transformer(folder)
