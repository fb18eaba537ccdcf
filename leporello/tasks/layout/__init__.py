"""Places of a task's documents in its data, so that shards are cut without building a text.

`layouts` keeps them between runs; `forward` reads a file at several places in bounded memory.
"""
