from __future__ import annotations

from itertools import permutations, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from components.artifacts import hash_folder
from components.encoders.recurrent import RecurrentEncoder, RecurrentSettings, load_recurrent, save_recurrent
from components.errors import ArtifactError
from components.text.segmentation import Segmenter, SegmenterConfig
from components.text.vocabulary import Vocabulary

WORDS = [chr(0x4E00 + number) for number in range(40)]
KINDS = list(product(["rnn", "lstm", "gru"], [False, True], [1, 2]))
every_kind = pytest.mark.parametrize(("cell", "bidirectional", "num_layers"), KINDS)


def make_encoder(cell="lstm", bidirectional=True, num_layers=1, **sizes):
    torch.manual_seed(7)
    sizes = {"hidden_size": 12, "embedding_size": 6, **sizes}
    shape = RecurrentSettings(cell=cell, bidirectional=bidirectional, num_layers=num_layers, **sizes)
    return RecurrentEncoder(shape, Vocabulary(WORDS), Segmenter(SegmenterConfig(segmenter="characters"))).eval()


def random_rows(lengths, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(2, 42, (length,), generator=generator) for length in lengths]


def run(encoder, rows, extra_padding=0):
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.zeros((len(rows), int(lengths.max()) + extra_padding), dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    with torch.no_grad():
        return encoder(ids, lengths)


@every_kind
def test_shapes_and_output_size(cell, bidirectional, num_layers):
    encoder = make_encoder(cell, bidirectional, num_layers)
    output = run(encoder, random_rows([5, 2]))
    assert encoder.output_size == 12 * (1 + bidirectional)
    assert output.hidden_BLH.shape == (2, 5, encoder.output_size)
    assert output.last_BH.shape == (2, encoder.output_size)
    assert (output.hidden_BLH[1, 2:] == 0).all()


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_one_layer_equals_torch_on_a_packed_batch(cell):
    encoder = make_encoder(cell)
    reference = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[cell](
        6, 12, batch_first=True, bidirectional=True
    )
    forward, backward = (stack.state_dict() for stack in encoder.stacks)
    reference.load_state_dict({**forward, **{f"{name}_reverse": value for name, value in backward.items()}})
    rows = random_rows([5, 1, 3])
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        encoder.embedding(padded), [5, 1, 3], batch_first=True, enforce_sorted=False
    )
    hidden, final = reference(packed)
    final = final[0] if cell == "lstm" else final
    output = run(encoder, rows)
    expected = torch.nn.utils.rnn.pad_packed_sequence(hidden, batch_first=True)[0]
    torch.testing.assert_close(output.hidden_BLH, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(output.last_BH, torch.cat([final[0], final[1]], dim=-1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("lengths", [[5, 0, 3], [0], [5, 6]])
def test_rnn_01_length_out_of_range_names_the_row(lengths):
    bad = [row for row, length in enumerate(lengths) if not 1 <= length <= 5]
    with pytest.raises(ValueError, match=rf"rows \[{bad[0]}\] of the batch have lengths \[{lengths[bad[0]]}\]"):
        make_encoder()(torch.full((len(lengths), 5), 2), torch.tensor(lengths))


def test_rnn_01_text_without_words_has_no_ids():
    encoder = make_encoder()
    assert encoder.encode(" \u3000") == []
    assert encoder.encode(WORDS[0] + " " + WORDS[5]) == [2, 7]


@every_kind
def test_rnn_02_neighbours_and_padding_never_change_a_result(cell, bidirectional, num_layers):
    encoder = make_encoder(cell, bidirectional, num_layers)
    short, long = random_rows([3, 50])
    alone = run(encoder, [short])
    batches = [(0, [short, long], 0), (1, [long, short], 0), (0, [short], 9)]
    for place, rows, extra_padding in batches:
        output = run(encoder, rows, extra_padding)
        torch.testing.assert_close(output.last_BH[place], alone.last_BH[0], atol=1e-6, rtol=0)
        torch.testing.assert_close(output.hidden_BLH[place, :3], alone.hidden_BLH[0], atol=1e-6, rtol=0)


@settings(max_examples=25, deadline=None)
@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=6), padding=st.integers(0, 5), seed=st.integers(0, 99))
def test_rnn_02_holds_for_any_lengths(lengths, padding, seed):
    encoder, rows = make_encoder(), random_rows(lengths, seed)
    together = run(encoder, rows, padding)
    for number, row in enumerate(rows):
        torch.testing.assert_close(together.last_BH[number], run(encoder, [row]).last_BH[0], atol=1e-6, rtol=0)


def test_rnn_02_gradients_ignore_padding():
    encoder = make_encoder()
    short, long = random_rows([3, 11])
    gradients = []
    for padding in (0, 6):
        encoder.zero_grad()
        ids = torch.nn.functional.pad(torch.nn.utils.rnn.pad_sequence([short, long], batch_first=True), (0, padding))
        encoder(ids, torch.tensor([3, 11])).last_BH.sum().backward()
        gradients.append([parameter.grad.clone() for parameter in encoder.parameters()])
    for first, second in zip(*gradients, strict=True):
        torch.testing.assert_close(first, second, atol=1e-5, rtol=1e-5)
    assert (gradients[1][0][0] == 0).all()


@pytest.mark.parametrize("companions", [[], [9]])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_rnn_03_backward_last_state_has_read_the_first_word(cell, companions):
    encoder = make_encoder(cell)
    rows = random_rows([6, *companions])
    flipped = [rows[0].clone(), *rows[1:]]
    flipped[0][0] = 2 + (flipped[0][0] - 1) % 40
    before, after = run(encoder, rows), run(encoder, flipped)
    assert (before.last_BH[0, 12:] - after.last_BH[0, 12:]).abs().max() > 1e-3
    # The backward state of the last word has read that word alone, and is not what stands for the text.
    torch.testing.assert_close(before.hidden_BLH[0, 5, 12:], after.hidden_BLH[0, 5, 12:], atol=1e-6, rtol=0)
    assert torch.equal(before.last_BH[0], torch.cat([before.hidden_BLH[0, 5, :12], before.hidden_BLH[0, 0, 12:]]))


@every_kind
def test_rnn_04_permuted_batch_gives_permuted_output_bit_for_bit(cell, bidirectional, num_layers):
    encoder = make_encoder(cell, bidirectional, num_layers)
    rows = random_rows([2, 5, 3])
    straight = run(encoder, rows)
    for order in permutations(range(3)):
        output = run(encoder, [rows[number] for number in order])
        assert torch.equal(output.last_BH, straight.last_BH[list(order)])
        assert torch.equal(output.hidden_BLH, straight.hidden_BLH[list(order)])


def test_dropout_acts_in_training_only():
    encoder = make_encoder(dropout=0.5)
    rows = random_rows([4, 4])
    assert torch.equal(run(encoder, rows).last_BH, run(encoder, rows).last_BH)
    encoder.train()
    assert not torch.equal(run(encoder, rows).last_BH, run(encoder, rows).last_BH)


@every_kind
def test_saved_encoder_reloads_to_identical_output(tmp_path, cell, bidirectional, num_layers):
    encoder = make_encoder(cell, bidirectional, num_layers, dropout=0.3)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        save_recurrent(encoder, tmp_path / name)
    reloaded = load_recurrent(tmp_path / "a")
    assert hash_folder(tmp_path / "a") == hash_folder(tmp_path / "b")
    assert reloaded.settings == encoder.settings
    assert reloaded.vocabulary.words == encoder.vocabulary.words
    assert reloaded.num_parameters == encoder.num_parameters == sum(p.numel() for p in encoder.parameters())
    rows = random_rows([4, 7])
    assert torch.equal(run(reloaded, rows).hidden_BLH, run(encoder, rows).hidden_BLH)


def test_weights_of_another_size_are_refused(tmp_path):
    save_recurrent(make_encoder(), tmp_path)
    text = (tmp_path / "config.json").read_text().replace('"hidden_size": 12', '"hidden_size": 13')
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ArtifactError, match="weights do not fit"):
        load_recurrent(tmp_path)


def test_truncated_weights_are_refused(tmp_path):
    save_recurrent(make_encoder(), tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ArtifactError, match="weights do not fit"):
        load_recurrent(tmp_path)
