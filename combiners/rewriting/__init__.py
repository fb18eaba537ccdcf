"""Combiners that search with rewritten questions, then have another combiner read the hits."""
