"""Measurements, run by hand: `python -m bench`."""
