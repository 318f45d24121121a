"""Segmented corpus -> word vectors (CBOW and skip-gram)."""
