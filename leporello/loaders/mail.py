"""Mail: messages in order with headers, bodies, and attachments read by other loaders."""

from __future__ import annotations

import codecs
import email
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.core.environment.input_limits import HEADER_LETTERS, MAIL_PARTS
from leporello.core.errors import UserError
from leporello.core.records import Document, Loss, Section
from leporello.loaders.files import Format, load_bytes
from leporello.loaders.html import Html
from leporello.loaders.text import decoded
from leporello.text.outline import joined
from leporello.text.tokens import terms

if TYPE_CHECKING:
    from email.policy import EmailPolicy

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_LINE = rb"[A-Za-z][A-Za-z0-9-]*:[^\n]*\n(?:[ \t][^\n]*\n)*"
_HEAD = re.compile(rb"(?:From [^\n]*\n)?((?:" + _LINE + rb")+)\r?\n")
_MAILS = re.compile(rb"^From (?=[^\n]*\d{4})[^\n]*+\n(?=[A-Za-z][A-Za-z0-9-]*:)", re.M)
# Words of texts that only refer to the HTML, which have few different ones.
_STUB = re.compile(r"\bhtml\b|\bbrowser\b|\bviewer\b|\bmail (?:client|reader|program)", re.I)
_STUB_TERMS = 100
_TAGS = re.compile(r"<(style|script)\b[^<]*</\1>|<[^<>]*>|&\w+;", re.I)
_HEAD_LETTERS = 1000  # of a body that may be HTML, although it is declared as text
_DEEPEST = 5  # mails in mails
_NEVER = datetime.max.replace(tzinfo=UTC)


@cache
def _policy() -> EmailPolicy[EmailMessage]:
    """Returns a policy that truncates headers, which the library parses in quadratic time."""
    from email.headerregistry import HeaderRegistry
    from email.policy import EmailPolicy

    headers = HeaderRegistry()
    # The library parses a header each time that it is looked up.
    parse = lru_cache(maxsize=256)(lambda name, value: headers(name, value[:HEADER_LETTERS]))
    return EmailPolicy(header_factory=parse)


@dataclass(frozen=True)
class Mail(Format):
    """Mail (eml, mbox): threads by their first date, mails by date, with attachments.

    If a body exists as text and as HTML, the text is read, unless it only refers to the HTML.
    """

    suffixes = (".eml", ".mbox", ".mbx", ".mht", ".mhtml")
    begins = re.compile(rb"\A(?:From |" + _LINE + rb")")

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- the content suffices
        """Returns whether the file begins with mail headers."""
        headers = _HEAD.match(head[: 2**16])
        lines = headers[1].splitlines() if headers else []
        names = {line.partition(b":")[0].lower() for line in lines}
        is_page = {b"mime-version", b"content-type"} <= names  # saved by a browser
        return is_page or (b"from" in names and bool({b"date", b"subject", b"received"} & names))

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns headers and bodies; places are named `mail 3 of 12, 2024-05-02`."""
        # A single mail may quote others in its body.
        is_mailbox = data.startswith(b"From ")
        starts = sorted({0, *(m.start() for m in _MAILS.finditer(data) if is_mailbox)})
        raw = [data[a:b] for a, b in zip(starts, [*starts[1:], None], strict=True)]
        mails = _in_order([_parsed(mail) for mail in raw])
        many = len(mails) > 1
        parts = (
            (f"mail {n} of {len(mails)}, {_day(mail)}" if many else "", _written(mail, path, 0))
            for n, mail in enumerate(mails, 1)
        )
        text = joined(parts, "\n\n\n")
        return replace(text, title="" if many else str(mails[0]["subject"] or ""))


def _parsed(raw: bytes) -> EmailMessage:
    body = raw.partition(b"\n")[2] if raw.startswith(b"From ") else raw
    message = email.message_from_bytes(body, policy=_policy())
    assert isinstance(message, EmailMessage)
    return message


def _date(mail: EmailMessage) -> datetime:
    try:
        date = parsedate_to_datetime(str(mail["date"]))
    except (ValueError, TypeError, IndexError):
        return _NEVER
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _day(mail: EmailMessage) -> str:
    date = _date(mail)
    return "undated" if date is _NEVER else f"{date:%Y-%m-%d}"


def _in_order(mails: Sequence[EmailMessage]) -> list[EmailMessage]:
    """Returns mails by date within threads, and threads by their first mail."""
    first: dict[str, datetime] = {}
    threads = []
    for number, mail in enumerate(mails):
        above = f"{mail['references'] or ''} {mail['in-reply-to'] or ''}".split()
        threads.append(above[0] if above else str(mail["message-id"] or f"{number:09}"))
        first[threads[-1]] = min(_date(mail), first.get(threads[-1], _NEVER))
    keyed = zip(threads, mails, strict=True)
    return [m for _, m in sorted(keyed, key=lambda pair: (first[pair[0]], pair[0], _date(pair[1])))]


def _written(mail: EmailMessage, path: Path, depth: int) -> Document:
    """Returns a mail with its headers, body and attachments."""
    lines = (f"{name}: {' '.join(str(mail[name]).split())}" for name in _SHOWN if mail[name])
    bodies, attached = _divided(mail, path)
    parts = [("", Document("", "\n".join(lines))), *(("", _body(body, path)) for body in bodies)]
    for part in attached[:MAIL_PARTS]:
        parts += _attached(part, path, depth)
    if len(attached) > MAIL_PARTS:
        parts.append(("", _lost(f"{len(attached):,} attachments", f"only {MAIL_PARTS:,} are read")))
    whole_mail = joined(parts)
    subject = Section(str(mail["subject"] or "mail"), 0, len(whole_mail.text))
    inner = (replace(section, level=section.level + 1) for section in whole_mail.sections)
    return replace(whole_mail, sections=(subject, *inner))


def _divided(
    part: EmailMessage, path: Path
) -> tuple[Sequence[EmailMessage], Sequence[EmailMessage]]:
    """Returns the parts of a mail's body, and its attachments."""
    if part.get_content_maintype() != "multipart":
        in_body = part.get_content_type() in ("text/plain", "text/html")
        if part["content-location"] and not in_body and part.get_content_maintype() == "text":
            return [], []  # a style sheet of a saved page
        is_body = in_body and not part.is_attachment() and not part.get_filename()
        return ([part], []) if is_body else ([], [part])
    if not part.is_multipart():  # without boundaries
        return [part], []
    inner = [
        _divided(child, path) for child in part.iter_parts() if isinstance(child, EmailMessage)
    ]
    bodies = [body for body, _ in inner if body]
    if part.get_content_subtype() == "alternative" and bodies:
        bodies = [_richest(bodies, path)]
    return [*chain(*bodies)], [*chain(*(attached for _, attached in inner))]


def _richest(versions: Sequence[Sequence[EmailMessage]], path: Path) -> Sequence[EmailMessage]:
    """Returns the version as text, or that as HTML if the text only refers to it."""
    pages = [v for v in versions if any(p.get_content_subtype() == "html" for p in v)]
    if len(pages) in (0, len(versions)):
        return versions[0]
    plain, page = next(version for version in versions if version not in pages), pages[-1]
    text = "".join(_decoded(part, path).text for part in plain)
    words = {*terms(text)}
    if len(words) > _STUB_TERMS:
        return plain
    shown = {*terms(" ".join(_TAGS.sub(" ", _decoded(part, path).text) for part in page))}
    differs = 2 * len(shown & words) < len(shown)
    return page if differs and (len(shown) > len(words) or _STUB.search(text)) else plain


def _decoded(part: EmailMessage, path: Path) -> Document:
    """Returns the text of a part in its charset, unless the bytes disprove that."""
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)
    charset = part.get_content_charset("us-ascii")
    try:
        text = decoded(data, path, "" if charset == "us-ascii" else charset)
    except UserError:  # an encoding that does not exist
        return decoded(data, path)
    guessed = decoded(data, path) if text.losses else text
    return text if guessed.losses else guessed


def _body(part: EmailMessage, path: Path) -> Document:
    text = _decoded(part, path)
    is_page = part.get_content_subtype() == "html"
    if not is_page and not Html.recognises(text.text[:_HEAD_LETTERS].encode(), path):
        return text
    page = Html().extract(codecs.BOM_UTF8 + text.text.encode(), path)
    return replace(page, losses=(*text.losses, *page.losses), notes=text.notes)


def _attached(part: object, path: Path, depth: int) -> Iterator[tuple[str, Document]]:
    """Yields the text of an attachment, or its loss."""
    assert isinstance(part, EmailMessage)
    name = part.get_filename() or part.get_content_type()
    if depth == _DEEPEST:
        yield "", _lost(name, f"mails are read at most {_DEEPEST} levels deep")
    elif part.get_content_type() == "message/rfc822":
        yield name, _written(part.get_payload(0), path, depth + 1)  # type: ignore[arg-type]  # one mail
    elif part.is_multipart():  # such as the status of a delivery
        yield "", Document("", "\n".join(str(inner).strip() for inner in part.iter_parts()))
    elif isinstance(data := part.get_payload(decode=True), bytes):
        try:
            if part.get_content_maintype() == "text" and part.get_content_charset():
                data = codecs.BOM_UTF8 + _decoded(part, path).text.encode()
            file = load_bytes(data, path / Path(name).name)
        except UserError as error:
            yield "", _lost(name, str(error).partition(": ")[2], len(data))
        else:
            yield "", Document("", f"Attachment: {name}")
            yield name, file


def _lost(name: str, why: str, size: int = 0) -> Document:
    return Document("", "", losses=(Loss("attachment", f"{why} ({size:,} bytes)", name),))
