"""Reader with a model on a server of OpenAI's or Anthropic's protocol.

It loads a tokenizer at most, and imports aiohttp when a session opens. Begin with `reader`, then
`requests`; `protocols` contains the differences between servers.
"""

from __future__ import annotations

from leporello.readers.endpoint.reader import Endpoint

__all__ = ["Endpoint"]
