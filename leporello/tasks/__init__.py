"""Tasks, which read examples from files of questions on documents.

Each benchmark has a file with a class that yields the examples of the official data, unchanged even
where they are wrong. Tasks read the data directory and write layouts to the cache. Begin with
`sample`, then `json_lines` (the user's own questions) or `official/benchmark` (shared code of the
benchmarks).
"""

import lazy_loader

# The stub next to this file lists the module of each class, which is imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
