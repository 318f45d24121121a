"""Segmented corpus -> recurrent encoder (rnn, lstm or gru)."""
