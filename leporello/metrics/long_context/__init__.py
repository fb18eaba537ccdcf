"""Metrics of newer benchmarks of long documents; a benchmark has one class for all its scores."""
