"""Retrievers: questions + chunks -> hits.

All questions of one document come in one call. A retriever worth caching offers `index(chunks)`
and `search(index, questions, chunks)` besides, and names in `search_only` the parameters that do
not change the index: one index then serves a sweep over them. One that offers `segment(chunks)` and
`join(segments)` too has its index of a collection put together of its files'. Begin with `bm25`.
"""

import lazy_loader

# The stub beside this file names the module of each class; a class is imported when it is used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
