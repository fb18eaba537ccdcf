"""Enrichers: they make passages of a document's chunks, which are searched in their place.

They may touch `core`, `models` and `text`. Begin with `parent_chunks`, the simplest; `summarising`
is what those share that ask for summaries, `contextual_chunks` adds the place of a chunk.
"""

import lazy_loader

# The stub beside this file names the module of each class; a class is imported when it is used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
