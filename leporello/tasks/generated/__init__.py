"""Benchmarks whose examples are generated from a seed and a length: RULER and BABILong.

`ruler` and `babilong` are the tasks; `recipes` and `words` write RULER's texts. The YAML files
contain the official prompts.
"""
