"""The newer benchmarks of long documents: a class each, and their prompts as data beside it.

Begin with `templates` (a prompt taken apart at its document), then `longbench`.
"""
