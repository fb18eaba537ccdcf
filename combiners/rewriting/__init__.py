"""Combiners that search with rewritten questions, then have another combiner read the hits.

Begin with `hyde`; `wording` has shared functions.
"""
