"""The page of `serve`: one's own files in the browser, with questions and answers beside them.

`app` answers on this machine only, and only to requests with the token; `documents` has what is
open. The page is `page.html`, `page.css` over the report's, and `page.js`.
"""

from __future__ import annotations

from leporello.serving.app import serve

__all__ = ["serve"]
