"""Tests of every format except PDF, with files from other writers: texts, losses and faults."""

import email.policy
import io
import re
from collections import Counter
from collections.abc import Callable
from email.message import EmailMessage
from itertools import pairwise, product
from pathlib import Path

import docx
import pptx
import pytest
from command_line import write_files
from contents import read
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from stories import WRITERS, Story, saved, zipped

from leporello.config import load_config, loader_of
from leporello.core.errors import ConfigError, UserError
from leporello.jobs.manifest import job_signature
from leporello.loaders import Csv, Pptx, Text
from leporello.loaders.files import load_bytes

NESTED = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise("abcdefghij"))
LAUGHS = f'<!DOCTYPE l [<!ENTITY a "lol">{NESTED}]><l>&j;</l>'
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)
ROWS = [["Item", "Amount"], ["Rent of the flat", "900"], ["Gas & oil", "30.5"]]
STORIES = {
    "short": Story([(1, "Report", ["One paragraph."])]),
    "nested": Story(
        [
            (1, "The Great Report", ["It begins here, & ends <there>.", "Then more of it."]),
            (2, "Method of Work", ["We counted 50% of $3 in {braces} #1 a_b."]),
            (3, "Details", ["Smaller still."]),
            (2, "Results", ["The end “quoted” – naïve café."]),
            (1, "Last Part", ["Grüße, 文字 и слова 😀."]),
        ],
        ROWS,
    ),
    "long": Story(
        [
            (1 + i % 3, f"Heading {i} of many", [f"Text {i} {j}. " * 9 for j in range(5)])
            for i in range(40)
        ]
    ),
}
HEADED = (".docx", ".odt", ".epub", ".html", ".md", ".rst", ".tex", ".nxml", ".xml", ".ipynb")


@pytest.mark.integration
@pytest.mark.parametrize(("suffix", "name"), [*product(WRITERS, STORIES)])
def test_a_story_is_read_as_it_was_written(suffix: str, name: str) -> None:
    story = STORIES[name]
    document = read(WRITERS[suffix](story), f"a{suffix}")
    words = story.words()
    missing = Counter(words) - Counter(document.text.split())
    assert missing.total() <= 0.01 * len(words)
    assert not [loss for loss in document.losses if not loss.furniture]
    if suffix in HEADED:
        titles = [section.title for section in document.sections]
        assert titles == [heading for _, heading, _ in story.sections]
        levels = [section.level for section in document.sections]
        low = levels[0] - 1
        assert [level - low for level in levels] == [level for level, _, _ in story.sections]
        starts = [document.text[s.start :].lstrip("#\\ ") for s in document.sections]
        assert all(t.startswith(s.title) for t, s in zip(starts, document.sections, strict=True))


METHOD = "<EncryptionMethod Algorithm='http://x#aes'/>"
LOCKED = f"<encryption><EncryptedData>{METHOD}</EncryptedData></encryption>"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.docx", lambda: WRITERS[".docx"](STORIES["short"])[:9000], "is corrupt or incomplete"),
        ("a.docx", zipped({"word/document.xml": "<no"}), "is not a Docx file, or is corrupt"),
        ("a.docx", lambda: zipped({"a": "", "word/document.xml": b" " * (2**26 + 1)}),
         "too many: a zip bomb?"),
        ("a.epub", zipped({"META-INF/container.xml": "", "META-INF/encryption.xml": LOCKED}),
         "locked by DRM"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
         "it looks like an Office file locked by a password"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "WordDocument".encode("utf-16-le"),
         "save it as .docx"),
        ("a.xlsb", zipped({"xl/workbook.bin": ""}), "(xlsb), which is not read; save it as .xlsx"),
        ("a.xml", LAUGHS, "Maximum entity amplification factor exceeded"),
        ("a.xml", "<!DOCTYPE l [<!ENTITY f SYSTEM 'file:///etc/passwd'>]><l>&f;</l>",
         "Entity 'f' not"),
        ("a.xml", "<a>" * 9999, "nested too deeply"),
        ("a.rtf", r"{\rtf1 " + "{" * 9999, "nested too deeply"),
        ("a.csv", "a,b\n" + "," * 200_000, "a.csv:2: more than 100,000 values in a row"),
        ("a.docx",
         lambda: zipped({"word/document.xml": "", **{f"{n}.xml": "" for n in range(20_001)}}),
         "an archive; unpack it"),
        ("a.json", "[" * 99999, "nested too deeply"),
        ("a.ipynb", '{"worksheets": [{"cells": []}]}', "is a notebook from before version 4"),
        ("a.ipynb", '{"cells": [', "is not a notebook, or is corrupt"),
        ("a.zip", zipped({"a": "b"}), "it looks like an archive; unpack it"),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_bad_files_are_refused_with_a_reason(
    name: str, content: str | bytes | Callable[[], str | bytes], message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        read(content() if callable(content) else content, name)


def test_content_of_office_files_that_is_not_text_is_reported() -> None:
    written = docx.Document()
    written.add_paragraph("Kept.")
    written.paragraphs[0]._p.append(
        parse_xml(f"<w:del {nsdecls('w')}><w:r><w:delText>gone words</w:delText></w:r></w:del>")
    )
    written.sections[0].footer.paragraphs[0].text = "Confidential"
    written.add_comment(written.paragraphs[0].runs, text="A remark.", author="Me", initials="M")
    document = read(saved(written), "a.docx")
    assert "Kept." in document.text
    assert "A remark." in document.text
    losses = {(loss.what, loss.characters, loss.furniture) for loss in document.losses}
    assert losses == {("tracked deletion", 10, False), ("footer", 12, True)}
    deck = pptx.Presentation()
    figures = CategoryChartData()  # type: ignore[no-untyped-call]
    figures.categories = ["East"]
    figures.add_series("Sales", (19.2,))  # type: ignore[no-untyped-call]
    for title in ("Shown", "Hidden"):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = title
    deck.slides[1]._element.set("show", "0")
    deck.slides[0].shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, 99, 99, figures)
    deck.slides[0].shapes.add_picture(io.BytesIO(PIXEL), 0, 0)
    document = read(saved(deck), "a.pptx")
    assert "Sales\nEast\t19.2" in document.text
    assert ("hidden slide", "slide 2", 6) in [
        (loss.what, loss.place, loss.characters) for loss in document.losses
    ]
    hidden = load_bytes(saved(deck), Path("a.pptx"), Pptx(hidden=True))
    assert [place.name for place in hidden.places] == ["slide 1", "slide 2"]


def test_mails_are_in_threads_with_attachments() -> None:
    def mail(name: str, day: int, above: str = "") -> EmailMessage:
        message = EmailMessage(policy=email.policy.SMTP)
        message["From"], message["Subject"] = "a@example.org", name
        message["Message-ID"] = f"<{name}>"
        message["Date"] = f"Thu, {day:02} May 2024 10:00:00 +0000"
        if above:
            message["In-Reply-To"] = f"<{above}>"
        message.set_content(f"Text of {name}.")
        return message

    first = mail("first", 2)
    inner = mail("deepest", 1)
    for depth in range(9):
        outer = mail(f"outer{depth}", 1)
        outer.add_attachment(inner)
        inner = outer
    first.add_attachment(inner)
    first.add_attachment(b"GIF89a\0", maintype="image", subtype="gif", filename="../x.gif")
    mails = (mail("reply", 9, "first"), mail("other", 4), first)
    box = b"".join(b"From a@b Thu May  2 10:00:00 2024\r\n" + bytes(m) for m in mails)
    document = read(box, "a.mbox")
    names = [place.name for place in document.places if place.name.startswith("mail ")]
    days = enumerate(("02", "09", "04"), 1)
    assert names == [f"mail {number} of 3, 2024-05-{day}" for number, day in days]
    at = [document.text.index(f"Text of {name}.") for name in ("first", "outer8", "reply", "other")]
    assert at == sorted(at)
    assert "deepest" not in document.text
    assert [loss.what for loss in document.losses] == ["attachment", "attachment"]


def test_a_task_names_its_loader(tmp_path: Path) -> None:
    row = {"id": "1", "document_path": "a.txt", "question": "?", "references": ["x"]}
    write_files(tmp_path, {"own.py": OWN, "rows.jsonl": [row]})
    (tmp_path / "a.txt").write_bytes("Zażółć".encode("cp1250"))
    signatures = []
    for loader in ("{class: Text, encoding: cp1250}", "{class: './own.py:Shout', mark: '?'}"):
        config = f"tasks:\n  mine: {{class: JsonLines, path: rows.jsonl, loader: {loader}}}\n"
        write_files(tmp_path, {"own.yaml": config})
        loaded = load_config([tmp_path / "own.yaml"])
        task = loaded.tasks["mine"].spec.build()
        [example] = task.examples()
        text = "Zażółć" if "Text" in loader else "a.txt?"
        assert example.document.text == text
        signatures.append(job_signature(loaded.select([])[0], loaded.tasks["mine"], "data"))
    assert "./own.py:Shout".removeprefix("./") in str(signatures[1]["sources"])
    assert loader_of("Text") == Text()
    assert loader_of("{class: Csv, header: none}") == Csv(header="none")
    with pytest.raises(ConfigError, match=r"--loader.*has no class 'Tex'"):
        loader_of("Tex")


OWN = """
from dataclasses import dataclass
from leporello import Document

@dataclass(frozen=True)
class Shout:
    mark: str = "!"

    def load(self, path):
        return Document(path.name, path.name + self.mark)
"""


@pytest.mark.integration
def test_content_that_libraries_leave_out_is_read() -> None:
    long = f"<r>{('<a>' + 'words ' * 99 + '</a>') * 20_000}</r>"  # libxml2 refuses 10 MB at once
    assert read(long, "a.xml").text.count("words") == 1_980_000
    document = read('{"a": 1} // more', "a.json")
    assert document.text == '{"a": 1} // more'
    assert "is not JSON" in document.notes[0]
    output = '{"data": {"text/plain": "<Figure>", "image/png": "iVBO"}}'
    cells = f'{{"source": "Fares"}}, {{"source": ["1+1"], "outputs": [{output}]}}'
    document = read(f'{{"cells": [{cells}], "nbformat": 4}}', "a.ipynb")
    assert document.text == "Fares\n\n1+1\n\n<Figure>"
    assert [(loss.what, loss.place) for loss in document.losses] == [("image", "cell 2")]
    assert read('{"a": {}, "b": [[], {}]}', "a.json").text == "a: {}\nb[0]: []\nb[1]: {}"
