"""Newer benchmarks of long documents, with their prompts in YAML files.

Begin with `templates` (splits a prompt at its document), then `longbench`.
"""
