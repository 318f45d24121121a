"""Scoring: gold and predicted tags or answers in, numbers out; fine-tuning and evaluation score alike."""
