"""Corpus to WordPiece vocabulary."""
