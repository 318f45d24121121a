"""Settings of WordPiece training."""

from __future__ import annotations

from pydantic import Field

from components.contract import StageConfig


class TokenizerConfig(StageConfig):
    """WordPiece vocabulary (Devlin et al. 2019, section 3; Wu et al. 2016, section 4.1)."""

    vocab_size: int = Field(default=8000, ge=6)
    """Largest vocabulary, special tokens included. The real size may be smaller; below the alphabet it is refused."""
    min_frequency: int = Field(default=2, ge=1)
    """How often two pieces must meet before they are merged into one."""
    limit_alphabet: int | None = Field(default=None, ge=1)
    """Keep only the most frequent characters; empty keeps every character of the corpus."""
    lowercase: bool = True
    """Fold upper case to lower case."""
    strip_accents: bool = False
    """Turn é into e (after NFD); on or off whatever `lowercase` says."""
    handle_chinese_chars: bool = True
    """Make every Chinese character a word of its own. Off keeps words joined, for text that is already segmented."""
    max_unk_rate: float = Field(default=0.005, ge=0.0, le=1.0)
    """Refuse the vocabulary when a larger share of the training text's pieces is [UNK]."""
    min_vocab_size: int = Field(default=100, ge=6)
    """Refuse a corpus that supports fewer pieces than this."""
    max_control_rate: float = Field(default=0.1, ge=0.0, le=1.0)
    """Refuse a document with a larger share of control characters: it is binary data, not text."""
