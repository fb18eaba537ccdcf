"""Chunkers: they divide a document into spans.

They may touch `core` and `text`. Begin with `fixed_tokens`; `packing` is what most of them share.
"""

import lazy_loader

# The stub beside this file names the module of each class; a class is imported when it is used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
