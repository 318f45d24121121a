"""Composition: the flows, the tracked stages and the command line."""
