from __future__ import annotations

from pathlib import Path

import pytest
from transformers import BertTokenizerFast

from components.encoders.pieces import PieceEncoder, Pieces, TokenPieces, load_pieces
from components.encoders.wordpiece import save_wordpiece
from components.text.normalization import NormalizationConfig

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *"北京在年a",
    "19",
    "##90",
    "kg",
    "##b",
    "[",
    "]",
    "sep",
    "cafe",
]


@pytest.fixture
def encoder(tmp_path: Path) -> PieceEncoder:
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    save_wordpiece(BertTokenizerFast(vocab=str(tmp_path / "vocab.txt")), tmp_path)
    return load_pieces(tmp_path, NormalizationConfig())


def ids(*pieces: str) -> list[int]:
    return [PIECES.index(piece) for piece in pieces]


@pytest.mark.parametrize(
    ("text", "pieces", "surfaces"),
    [
        ("北京１９９０年", ["北", "京", "19", "##90", "年"], ["北", "京", "１９", "９０", "年"]),
        ("㎏ 北\u200b京\u3000\u3000在", ["kg", "北", "京", "在"], ["㎏", "北", "京", "在"]),
        ("[SEP]Ab", ["[", "sep", "]", "a", "##b"], ["[", "SEP", "]", "A", "b"]),
        ("Cafe\u0301", ["cafe"], ["Cafe\u0301"]),
        ("龘", ["[UNK]"], ["龘"]),
        ("", [], []),
        (" \u200b\u3000", [], []),
    ],
)
def test_offsets_lead_to_the_original_text(
    encoder: PieceEncoder, text: str, pieces: list[str], surfaces: list[str]
) -> None:
    found = encoder.encode(text)
    assert found.ids == ids(*pieces)
    assert [text[start:end] for start, end in found.offsets] == surfaces


def test_many_texts_are_encoded_like_each_alone(encoder: PieceEncoder) -> None:
    texts = ["北京" * (n % 7) + "１９９０" for n in range(1100)]
    assert encoder.encode_texts(texts) == [encoder.encode(text) for text in texts]
    assert encoder.encode_texts([]) == []


def test_words_by_hand(encoder: PieceEncoder) -> None:
    found = encoder.encode_tokens(["北", "１９９０", "\u200b", "", "ab", "\u3000"])
    assert found == TokenPieces(ids("北", "19", "##90", "a", "##b"), [0, 1, None, None, 3, None])
    assert encoder.encode_token_lists([["北"], [], ["ab", "北"]]) == [
        TokenPieces(ids("北"), [0]), TokenPieces([], []), TokenPieces(ids("a", "##b", "北"), [0, 2])
    ]  # fmt: skip


def test_forgetting_known_words_changes_nothing(encoder: PieceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.encoders.pieces._MAX_KNOWN_WORDS", 2)
    assert encoder.encode_tokens(["北", "京", "在"]).ids == ids("北", "京", "在")
    assert encoder.encode_tokens(["在", "年"]).ids == ids("在", "年")
    assert isinstance(encoder.encode("北"), Pieces)
