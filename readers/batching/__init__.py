"""Micro-batches under a budget of tokens, and a cache of tokenized texts."""
