"""Micro-batches under a budget of tokens, and a cache of tokenized texts.

It handles tokens, not models. Begin with `token_budget`, which uses `micro_batches`.
"""
