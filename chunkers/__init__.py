"""Chunkers, which divide a document into spans.

They may import `core` and `text`. Begin with `fixed_tokens`; most chunkers use `packing`.
"""

import lazy_loader

# The stub beside this file names the module of each class; a class is imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
