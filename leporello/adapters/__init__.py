"""Adapters of pipelines to other libraries: LangChain, Haystack and lm-evaluation-harness.

For the reverse, see `leporello.readers.foreign` and `leporello.retrievers.foreign`.
"""
