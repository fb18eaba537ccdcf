"""Adapters of pipelines to other libraries: LangChain, Haystack and lm-evaluation-harness.

Each module imports one library. For the reverse, see `leporello.readers.foreign` and
`leporello.retrievers.foreign`, which use components of other libraries as stages.
"""
