"""One pipeline over the documents of a shard: select, combine, read in batches, store.

Start with `rounds.py`, which forms the batches. `active_example.py` contains an example whose
combiner has not returned, `store.py` the outputs that a resumed shard replays, and `results/` the
rows and columns that files contain. This package may use the cache and the config, but neither
runs nor directories nor other processes.
"""
