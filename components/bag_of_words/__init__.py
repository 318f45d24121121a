"""Labelled texts -> one-hot or TF-IDF features."""
