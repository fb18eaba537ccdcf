"""Serves documents to a browser page, to programs over HTTP, and to agents over MCP.

`app` accepts only requests from this machine with the token; `documents` stores open documents.
The page consists of `page.html`, `page.js` and `page.css`, which extends the report's style.
"""

from __future__ import annotations

from leporello.serving.app import serve

__all__ = ["serve"]
