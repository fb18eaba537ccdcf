"""Combiners: hits -> reader inputs -> one answer (the "recombine" of divide, select, solve).

They may use `core` and `text`, and do not import readers. Begin with `stuff`, then `map_reduce`.
"""

import lazy_loader

# The stub beside this file names the module of each class; a class is imported when it is used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
