"""Tasks: files of questions on documents, as examples. A task's own class is named in the YAML.

One file a benchmark, each a class whose `examples` yields what the official file says, faults
included; it may read the data directory and write layouts to the cache. Begin with `sample`, then
`json_lines` (the user's own questions) or `official/benchmark` (what the benchmarks share);
`generated` are made here.
"""

import lazy_loader

# The stub beside this file names the module of each class; a class is imported when it is used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
