"""Encoders on disk: one loader per family, shared by fine-tuning and the probes."""
