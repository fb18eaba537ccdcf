"""Metrics of typed answers."""
