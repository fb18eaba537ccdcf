"""Benchmarks that are made here, of a seed and a length: RULER's and BABILong's.

`ruler` and `babilong` are the tasks, `recipes` and `words` write RULER's texts. The prompts are the
benchmarks', in the YAML files beside.
"""
