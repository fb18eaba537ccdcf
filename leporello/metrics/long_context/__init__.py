"""What the newer benchmarks score: LongBench, its second version, InfiniteBench and LooGLE.

Their tables hold one score a task, so that one class a benchmark has a parameter for which. Begin
with `longbench`.
"""
