"""The vocabulary that every other room speaks: records, protocols of stages, errors, notes.

It imports nothing of Leporello and no library that is heavy, and touches no file but one that it is
asked to open. Begin with `records` (Document, Example, Hit, Read, Output), then `protocols`: what a
chunker, a retriever, a reader and a combiner are.
"""

__version__ = "0.2.0"
