"""Metrics of newer benchmarks of long documents.

Benchmarks report one score per task, so one class per benchmark has a parameter that selects the
score. Start with `longbench`.
"""
