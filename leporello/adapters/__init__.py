"""Pipelines as parts of other libraries: LangChain, Haystack and lm-evaluation-harness.

A module a library, which is imported only there. What of theirs can be a stage of ours is in
`leporello.readers.foreign` and `leporello.retrievers.foreign`.
"""
