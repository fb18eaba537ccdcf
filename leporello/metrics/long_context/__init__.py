"""Metrics of newer benchmarks: LongBench, LongBench v2, InfiniteBench and LooGLE.

Benchmarks report one score per task, so one class per benchmark has a parameter that selects the
score. Start with `longbench`.
"""
