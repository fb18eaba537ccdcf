"""Models of other libraries as readers: a class of one's own extends one of these."""

from leporello.readers.foreign.wrapped_models import HaystackReader, LangChainReader

__all__ = ["HaystackReader", "LangChainReader"]
