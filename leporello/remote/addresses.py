"""URLs as the user writes them: what may stand in one, and what is a secret."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote

from leporello.errors import UserError
from leporello.redaction import key

__all__ = ["checked", "expanded", "is_url", "is_web", "protocol_of"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
_WEB = ("http", "https")
# Fields of a query that sign it: who has them, has the file.
_SIGNS = re.compile(
    r"(?:.*[_-])?(?:api_?key|key|token|sig|signature|credential|password|secret)", re.IGNORECASE
)


def is_url(text: str) -> bool:
    """Says whether this is a URL rather than a path."""
    return _URL.match(text) is not None


def protocol_of(url: str) -> str:
    """Returns what stands before the `://`."""
    return url.partition(":")[0].lower()


def is_web(url: str) -> bool:
    """Says whether a web server is asked."""
    return protocol_of(url) in _WEB


def checked(url: str) -> str:
    """Returns a URL in the one form that is written to files.

    Raises:
        UserError: A secret stands in it, or it is none of those that are taken; no message
            repeats a secret.
    """
    protocol, rest = protocol_of(url), url.partition("://")[2]
    authority, _, path = rest.partition("/")
    user, _, host = authority.rpartition("@")
    shown = f"{protocol}://{'…@' if user else ''}{host}/…"
    name, colon, password = user.partition(":")
    alone = name if is_web(url) and not colon else ""  # as tokens stand
    if _is_literal(password or alone) or _is_signed(url):
        raise UserError(
            f"{shown}: a secret stands in this URL, and URLs are written to a run's files: put it"
            " into an environment variable, and that into the URL, in single quotes:"
            f" '{protocol}://user:$SECRET@host/…', '{protocol}://host/…?$QUERY'"
        )
    if "::" in url:
        raise UserError(f"{shown}: chains of URLs (::) are not taken; unpack the file first")
    path, mark, query = path.partition("?") if is_web(url) else (path, "", "")
    if not host or "//" in f"/{path}":
        what = "part between slashes" if host else "host or bucket"
        raise UserError(f"{url}: a {what} is empty; write it, or leave out the slash")
    query = query.replace("/", "%2F")  # which means the same there, and is no part of a path
    return f"{protocol}://{authority}/{path.strip('/')}".rstrip("/") + mark + query


def expanded(url: str) -> str:
    """Returns a URL with what the environment has for the variables in it; never to be shown.

    Raises:
        UserError: One of them is not set.
    """
    protocol, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    authority = _VARIABLE.sub(lambda found: quote(key(found[0]), safe=""), authority)
    return f"{protocol}://{authority}{slash}{_VARIABLE.sub(lambda found: key(found[0]), path)}"


def _is_literal(text: str) -> bool:
    return bool(text) and _VARIABLE.fullmatch(text) is None


def _is_signed(url: str) -> bool:
    if not is_web(url):
        return False
    fields = parse_qsl(url.partition("?")[2])
    return any(_SIGNS.fullmatch(name) and _is_literal(value) for name, value in fields)
