"""Calls of stages: the parameters of their methods, checks of their results, and caching.

All code calls stages through this package. Begin with `stage_calls`, then `derived`.
"""
