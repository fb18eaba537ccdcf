"""Learns from a run of several pipelines which of them answers a question best."""
