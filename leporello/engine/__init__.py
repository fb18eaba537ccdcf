"""Runs one pipeline over the documents of a shard: select, combine, read in batches, store.

Start with `rounds.py`, which forms the batches. This package may use the cache and the config, but
neither runs nor directories nor other processes.
"""
