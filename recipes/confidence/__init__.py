"""Fits the confidence of the reader `Embedded` to questions about documents of many passages."""
