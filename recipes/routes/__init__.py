"""Learns from a run which of its pipelines is best for each question."""
