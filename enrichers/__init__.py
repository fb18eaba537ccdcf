"""Enrichers, which make passages from a document's chunks; a retriever searches the passages.

They may import `core`, `models` and `text`. Begin with `written`.
"""

import lazy_loader

# The stub beside this file names the module of each class; a class is imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
