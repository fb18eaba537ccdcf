"""Shared code of benchmarks with official files: archives, fields, checks and downloads.

Begin with `benchmark`: its subclasses parse one row, and inherit checks, merging of rows and
layouts.
"""
