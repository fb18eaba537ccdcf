"""Parser of reports for tests."""

import gzip
import json
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from leporello.analysis.comparison.scores import Draws

DRAWS = Draws(samples=100)


class Page(HTMLParser):
    """Report, parsed as in a browser: its tags, texts and packed data."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data: dict[str, Any] = {}
        self.text = ""
        self._opened: list[str] = []
        self.unclosed: list[str] = []
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "link"):
            self._opened.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Stores the tag if another one is still open."""
        if self._opened.pop() != tag:
            self.unclosed.append(tag)

    def handle_data(self, data: str) -> None:
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        if tag == "script" and attributes.get("type") == "application/octet-stream":
            if data.strip():
                self.data[str(attributes["id"])] = json.loads(gzip.decompress(b64decode(data)))
        else:
            self.text += data

    def examples(self) -> list[dict[str, Any]]:
        """Returns all examples of the first task."""
        pieces = [data for name, data in self.data.items() if name.startswith("piece-0-")]
        return [example for piece in pieces for example in piece["examples"]]
