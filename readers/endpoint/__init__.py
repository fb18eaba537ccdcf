"""Models behind an OpenAI-compatible server.

It loads no model, at most a tokenizer, and imports aiohttp once a session opens. Begin with
`reader`, then `requests`, which sends, and `responses`, which judges answers; `protocols` has the
differences between servers.
"""

from __future__ import annotations

from leporello.readers.endpoint.reader import Endpoint

__all__ = ["Endpoint"]
