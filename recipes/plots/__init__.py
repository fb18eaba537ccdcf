"""Trains word weights of the reader `Precedence` on summaries of stories."""
