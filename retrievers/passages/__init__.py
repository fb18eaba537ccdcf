"""Retrievers that use other retrievers' hits, and relations between passages.

They may use the same packages as `retrievers`. Begin with `mmr`.
"""
