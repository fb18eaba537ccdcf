"""Retrievers: questions + chunks -> hits.

One call has all questions on a document. A retriever with a cached index also has `index(chunks)`
and `search(index, questions, chunks)`, and lists in `search_only` the parameters that do not change
the index. With `segment(chunks)` and `join(segments)`, the index of a collection consists of
indexes of its files. Begin with `bm25`.
"""

import lazy_loader

# The stub beside this file names the module of each class; a class is imported when it is used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
