"""Fingerprints of everything that a result depends on, and a disk cache with fingerprints as keys.

This room touches only files below the cache directory, and the source files of stages.
Begin with `dependencies`, then `store`.
"""
