"""Types that all other packages share: records, protocols of stages, errors, notes.

The package imports no other package of Leporello and no heavy library, and opens only files that a
caller names. Begin with `records` (Document, Example, Hit, Read, Output), then `protocols`, which
defines chunkers, retrievers, readers and combiners.
"""

__version__ = "0.2.0"
