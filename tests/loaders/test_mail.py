"""Tests of mails: which parts are the body, charsets, and attachments."""

import base64
import quopri
from pathlib import Path

import pytest

from leporello import Document
from leporello.loaders.files import load_bytes

HEAD = (
    "From: a@x.example\r\nTo: b@x.example\r\nSubject: Order\r\n"
    "Date: Thu, 02 May 2024 10:00:00 +0000\r\n"
)
PAGE = "<p>Deliver <b>40</b> casks on 9&nbsp;May.</p>"
SHOWN = "Deliver 40 casks on 9\xa0May."


def part(kind: str, text: str | bytes, *headers: str) -> bytes:
    """Returns a part of a mail; text is in UTF-8."""
    lines = "".join(f"{header}\r\n" for header in headers)
    content = text.encode() if isinstance(text, str) else text
    return f"Content-Type: {kind}\r\n{lines}\r\n".encode() + content


def multipart(subtype: str, *parts: bytes) -> bytes:
    mark = f"={subtype}{sum(map(len, parts))}="
    inner = b"".join(f"--{mark}\r\n".encode() + content + b"\r\n" for content in parts)
    head = f'Content-Type: multipart/{subtype}; boundary="{mark}"\r\n\r\n'
    return head.encode() + inner + f"--{mark}--\r\n".encode()


def plain(text: str) -> bytes:
    return part("text/plain; charset=utf-8", text)


def page(text: str = PAGE) -> bytes:
    return part("text/html; charset=utf-8", text)


def loaded(content: bytes, name: str = "a.eml") -> Document:
    mail = HEAD.encode() + content
    if name == "a.mbox":
        mark = b"From a@x.example Thu May  2 10:00:00 2024\r\n"
        mail = mark + mail + b"\r\n" + mark + HEAD.encode() + b"\r\nAnother mail.\r\n"
    return load_bytes(mail, Path(name))


PIXEL = part("image/gif", "GIF89a\0\0", "Content-ID: <x>", "Content-Transfer-Encoding: 8bit")
STUBS = [
    "",
    " \r\n \t\r\n",
    "\xa0\u200b",
    "This message requires an HTML viewer.",
    "This is a multi-part message in MIME format. Your mail program does not show HTML; use one"
    " that does, or ask the sender of this message to write to you again.",
    "[image: logo]",
]


@pytest.mark.parametrize("name", ["a.eml", "a.mbox"])
@pytest.mark.parametrize("stub", STUBS)
def test_html_is_read_if_the_text_only_refers_to_it(name: str, stub: str) -> None:
    """A blank text, or one with few words of the page, is not a version of it."""
    document = loaded(multipart("alternative", plain(stub), page()), name)
    assert SHOWN in document.text
    assert not stub.strip() or stub not in document.text


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Deliver 40 casks on 9 May.", PAGE),
        ("Deliver 40 casks on 9 May. Open the HTML version in a browser for the map.", PAGE),
        ("Deliver 40 casks on 9 May.", "<style>p {color: red}</style><div class=x></div>" + PAGE),
        ("Deliver 40 casks on 9 May.\n-- \nAnn", "<p>Your viewer shows plain text.</p>"),
        ("Deliver 40 casks on 9 May.", "<img src=cid:x>"),
        ("Deliver 40 casks. " + "We thank you for the many years of trade. " * 9, "<p>See above"),
        ("配送四十桶酒。", "<p>配送<b>四十</b>桶酒。</p>"),
    ],
)
def test_the_text_is_read_if_it_says_as_much(text: str, html: str) -> None:
    """The version as text needs no guess about the layout."""
    document = loaded(multipart("alternative", plain(text), page(html)))
    assert document.text.endswith(f"\n\n{text}")


@pytest.mark.parametrize(
    "content",
    [
        multipart("mixed", multipart("alternative", plain(""), page()), PIXEL),
        multipart("alternative", plain(" "), multipart("related", page(), PIXEL)),
        multipart("alternative", plain(" "), multipart("mixed", page(), PIXEL)),
        multipart("mixed", multipart("related", multipart("alternative", page()), PIXEL)),
        multipart("signed", multipart("mixed", page(), PIXEL)),
        multipart("alternative", part("text/x-amp-html", "<p>amp"), page(), PIXEL),
    ],
)
def test_bodies_are_found_in_nested_parts(content: bytes) -> None:
    document = loaded(content)
    assert document.text.count(SHOWN) == 1
    assert "attachment" in [loss.what for loss in document.losses]


def test_several_texts_are_joined() -> None:
    content = multipart("mixed", plain("One."), PIXEL, plain("Two."), page("<p>Three."))
    document = loaded(content)
    assert document.text.endswith("One.\n\nTwo.\n\nThree.")


def test_a_part_of_another_type_than_it_declares_is_read() -> None:
    assert SHOWN in loaded(plain(f"<html><body>{PAGE}</body></html>")).text
    content = b"Content-Type: multipart/mixed; boundary=x\r\n\r\n40 casks\r\n"
    assert "40 casks" in loaded(content).text


@pytest.mark.parametrize(
    ("charset", "encoding"),
    [
        ("iso-8859-2", "iso8859-2"),
        ("windows-1250", "cp1250"),
        ("us-ascii", "utf-8"),
        ("us-ascii", "iso8859-2"),
        ("utf-8", "iso8859-2"),
        ("x-unknown", "cp1250"),
        ("utf-16", "utf-16"),
    ],
)
@pytest.mark.parametrize("transfer", ["8bit", "base64", "quoted-printable"])
@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
def test_charsets_of_parts(kind: str, transfer: str, charset: str, encoding: str) -> None:
    if transfer == "8bit" and encoding == "utf-16":
        transfer = "base64"
    text = "Łódź: źródło jest czyste, a książka leży na stole. Zażółć gęślą jaźń."
    body = text if kind == "text/plain" else f"<meta charset=iso-8859-1><p>{text}"
    data = body.encode(encoding)
    encoded = {"base64": base64.encodebytes, "quoted-printable": quopri.encodestring}
    data = encoded[transfer](data) if transfer in encoded else data
    header = f"Content-Transfer-Encoding: {transfer}"
    document = loaded(part(f"{kind}; charset={charset}", data, header))
    assert document.text.rstrip().endswith(text)
    assert not document.losses


@pytest.mark.parametrize(
    ("attached", "reason"),
    [
        (part("application/ms-tnef; name=winmail.dat", b"\x78\x9f\x3e\x22\0\0"), "winmail.dat"),
        (part("image/gif; name=map.gif", "GIF89a\0\0"), "binary data"),
        (part("application/zip; name=a.zip", b"PK\x03\x04\0\0\xff"), "zip archive"),
    ],
)
def test_attachments_that_cannot_be_read_are_losses(attached: bytes, reason: str) -> None:
    document = loaded(multipart("mixed", plain("See it."), attached))
    (loss,) = [loss for loss in document.losses if loss.what == "attachment"]
    assert reason in f"{loss.place} {loss.why}"


ATTACHED = part("text/plain; name=n.txt", "Mole 7", "Content-Disposition: attachment")


@pytest.mark.parametrize(
    ("attached", "text"),
    [
        (part("text/csv; charset=iso-8859-2; name=a.csv", "id;kto\n1;Łódź".encode("iso8859-2")),
         "Łódź"),
        (part("text/calendar; charset=utf-8", "BEGIN:VEVENT\r\nSUMMARY:Mole 7"), "Mole 7"),
        (ATTACHED, "Attachment: n.txt\n\nMole 7"),
        (part("message/delivery-status", "Action: failed\r\n\r\nStatus: 5.1.1"), "5.1.1"),
        (part("message/rfc822", HEAD.encode() + multipart("alternative", plain(""), page())),
         SHOWN),
    ],
)  # fmt: skip
def test_attachments_are_read(attached: bytes, text: str) -> None:
    document = loaded(multipart("alternative", plain("See it."), attached))
    assert "See it." in document.text
    assert text in document.text
    assert "Attachment: n.txt\n\nMole 7" in loaded(ATTACHED).text  # without another part


def test_a_mail_with_the_mark_of_a_mailbox_in_its_body_is_one_mail() -> None:
    """Only files that begin with the mark are mailboxes."""
    document = loaded(plain("40 casks.\r\n\r\nFrom a@x Thu May  2 2024\r\nNote: none\r\n"))
    assert "Subject: Order" in document.text
    assert "40 casks." in document.text


def test_the_first_mail_of_a_mailbox_needs_no_date() -> None:
    mails = b"From -\nSubject: a\n\nhi\n\nFrom x Thu May  2 10:00:00 2024\nSubject: b\n\nyo\n"
    assert load_bytes(mails, Path("a.mbox")).text.split("\n\n\n\n\n") == [
        "Subject: a\n\nhi",
        "Subject: b\n\nyo\n",
    ]


def test_saved_pages_are_read() -> None:
    style = part("text/css", "p {color: red}", "Content-Location: a.css")
    content = b"MIME-Version: 1.0\r\n" + multipart("related", page(), style)
    assert load_bytes(content, Path("a.mht")).text == SHOWN
    assert load_bytes(content, Path("a")).text == SHOWN
