"""Corpus and WordPiece vocabulary to a BERT encoder pretrained with MLM and NSP."""
