"""Compares pipelines, and tests whether they differ by more than chance.

It reads only the statistics of runs, neither data nor models. Begin with `comparison`.
"""
