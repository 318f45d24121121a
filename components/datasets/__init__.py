"""Labelled text: from package data, local files or the hub to train, validation and test splits, and their audit."""
