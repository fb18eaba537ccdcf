"""One pipeline over the documents of a shard: select, combine, read in batches, store.

Begin with `rounds.py`, which decides what is read together. `active_example.py` is one example
whose combiner has not returned, `store.py` holds what a resumed shard replays, and `results/` has
the forms in which examples are written. This room may touch the cache and the config above it, and
knows nothing of runs, directories or other processes.
"""
