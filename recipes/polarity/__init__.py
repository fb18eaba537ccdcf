"""Trains word weights of the reader `Polarity` on labelled opinions."""
