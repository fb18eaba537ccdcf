"""Newer benchmarks of long documents, with their prompts in YAML files.

Begin with `templates` (data files, prompts, and generated examples), then `longbench`. RULER and
BABILong generate their texts; `recipes` and `sources` write those of `ruler`.
"""
