"""Serves documents to a browser page, to programs over HTTP, and to agents over MCP.

`app` accepts only requests from this machine with the token; `documents` stores open documents.
The page consists of `page.html`, `page.css`, which extends the report's style, and three scripts:
`server.js` sends requests, `text.js` shows the text in the `blocks` of the server, and `page.js`
shows answers, the outline and the documents.
"""

from leporello.serving.app import serve

__all__ = ["serve"]
