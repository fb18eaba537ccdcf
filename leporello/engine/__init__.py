"""One pipeline over the documents of a shard: select, combine, read in batches, store.

Start with `rounds.py`, which forms the batches. `active_example.py` defines examples whose
combiner has not returned, `store.py` stores the outputs that a resumed shard replays, and
`results/` makes the rows and columns of files. This package may use the cache and the config, but
neither runs nor directories nor other processes.
"""
