"""Combiners that search with other words than the question's, then have another combiner read.

Begin with `hyde`; what they share is in `wording`.
"""
