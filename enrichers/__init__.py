"""Enrichers: they make passages of a document's chunks, which are searched in their place.

They may touch `core`, `models` and `text`. Begin with `parent_chunks`, the simplest.
"""

from leporello.enrichers.parent_chunks import ParentChunks

__all__ = ["ParentChunks"]
