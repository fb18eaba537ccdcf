"""The page of `serve`: one's own files in the browser, with questions and answers beside them.

`server` binds to this machine alone, `access` lets in only who knows the token, `app` answers, and
`documents` has what is open. The page is `page.html`, `page.css` over the report's, and `page.js`.
"""

from __future__ import annotations

from leporello.serving.server import serve

__all__ = ["serve"]
