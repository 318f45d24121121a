"""Evaluation: predictions plus gold labels give scores with intervals, and nothing else is read."""
