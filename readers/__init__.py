"""Readers: reader inputs -> outputs. Each class here can be named in `pipelines.yaml`.

A module at the top is a reader, or a few; the folders hold what they share. All of it may touch
`core`, `text` and `models`. Begin with `naive`, the simplest, then `causal_lm`.
"""

import lazy_loader

# The stub beside this file names the module of each class; a class is imported when it is used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
