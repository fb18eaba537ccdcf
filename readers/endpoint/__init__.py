"""Models behind an OpenAI-compatible server."""

from __future__ import annotations

from readers.endpoint.reader import Endpoint

__all__ = ["Endpoint"]
