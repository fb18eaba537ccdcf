"""Pipelines side by side, and whether they differ by more than chance.

It reads runs' statistics alone: neither data nor models. Begin with `comparison`, whose `scores`
resamples by `significance`; `tables` lays the result out.
"""
