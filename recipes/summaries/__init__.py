"""Fits the weights of summaries by ridge regression on documents with summaries.

Begin with `recipe`.
"""
