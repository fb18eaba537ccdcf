"""Compares pipelines, and tests whether they differ by more than chance.

It reads only the statistics of runs, neither data nor models. Begin with `comparison`. It calls
`scores`, which resamples with `significance`; `tables` formats the result.
"""
