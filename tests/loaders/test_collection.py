"""Tests of collections: files, losses, notes, exact offsets and the cache."""

import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello import Document, Span
from leporello.cache.store import Cache
from leporello.core.errors import UserError
from leporello.core.members import join, member_at, member_document
from leporello.core.records import Place, Section
from leporello.loaders import Text
from leporello.loaders.collection import load_collection, unreadable
from leporello.text.outline import cited


def written(folder: Path, **files: str | bytes) -> Path:
    """Returns a folder with these files; `_` in a name replaces the dot before its suffix."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / ".".join(name.rsplit("_", 1))).write_bytes(data)
    return folder


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5), st.data())
def test_members_equal_the_original_documents(texts: list[str], data: st.DataObject) -> None:
    documents = []
    for number, text in enumerate(texts):
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        section, place = Section("s", start, end, 2), Place(f"p{number}", start, end)
        documents.append(Document(f"d{number}", text, "t", (section,), (), (place,)))
    joined = join(documents, "all")
    for number, document in enumerate(documents):
        extracted, member = member_document(joined, number), joined.members[number]
        for field in ("id", "text", "title", "sections", "places"):
            assert getattr(extracted, field) == getattr(document, field)
        assert extracted.sha256 == document.sha256 == Document("", document.text).sha256
        assert {member_at(joined, i) for i in range(member.start, member.end)} == {number}
        for section in document.sections:
            shifted = joined.sections[number]
            expected = extracted.text[section.start : section.end]
            assert joined.text[shifted.start : shifted.end] == expected


def test_places_name_the_file(tmp_path: Path) -> None:
    written(tmp_path, a_txt="One fish.", b_md="# Two\n\nfish")
    document = load_collection([tmp_path])
    assert document.text == "One fish.\n\n# Two\n\nfish"
    assert cited(document, Span(4, 8)) == "a.txt characters 4–8"
    assert cited(document, Span(18, 22)) == "b.md Two"
    assert cited(document, Span(4, 22)) == "a.txt characters 4–9 to b.md"


def test_files_of_a_folder_are_read_or_reported(tmp_path: Path) -> None:
    outside = written(tmp_path / "out", far_txt="far")
    folder = written(tmp_path / "in", a_txt="A", b_txt=b"\0\xff", e_txt="")
    (written(folder / "more", c_txt="C", _hidden="H") / "odd\udcff\n.txt").write_text("odd")
    written(folder / ".git", x_txt="X")
    (folder / "link").symlink_to(outside)
    (folder / "link.txt").symlink_to(outside / "far.txt")
    (folder / "same.txt").symlink_to(folder / "a.txt")
    (folder / "circle").symlink_to(folder / "circle")
    os.mkfifo(folder / "pipe")
    document = load_collection([folder, folder / "a.txt"], "all")
    names = ["in/a.txt", "in/more/c.txt", "in/more/odd��.txt"]
    assert [member.name for member in document.members] == names
    assert [loss.place for loss in unreadable(document)] == ["in/b.txt", "in/e.txt", "in/pipe"]
    assert all(loss.why for loss in document.losses)
    assert document.notes == (
        "skipped, hidden: in/.git, in/more/.hidden",
        "skipped, links out of their folder: in/circle, in/link, in/link.txt",
    )
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="empty: contains no file with text: it is empty"):
        load_collection([tmp_path / "empty"])
    with pytest.raises(UserError, match="no file matches this pattern"):
        load_collection([tmp_path / "*.none"])
    with pytest.raises(UserError, match="no such file"):
        load_collection([tmp_path / "none.txt"])
    [member] = load_collection([f"{tmp_path}/**/c.*"]).members
    assert member.name == "c.txt"


def test_archives_are_unpacked_in_memory(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in/a.txt", "fish")
        archive.writestr("inner.zip", b"PK\3\4\1\2\3")
        archive.writestr("../../up.txt", "up")
        archive.writestr(".hidden/x.txt", "x")
        archive.writestr("broken.txt", "brokenbroken", zipfile.ZIP_STORED)
    data = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(data.replace(b"brokenbroken", b"mendedmended"))
    written(tmp_path, no_zip="no archive")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.txt", b"0" * 2**27)
    document = load_collection([tmp_path])
    assert [m.name for m in document.members] == ["a.zip/in/a.txt", "a.zip/../../up.txt"]
    assert document.notes == ("skipped, hidden: a.zip/.hidden/x.txt",)
    reasons = {loss.place: loss.why for loss in document.losses}
    assert [*reasons] == ["bomb.zip", "no.zip", "a.zip/inner.zip", "a.zip/broken.txt"]
    assert "would unpack to 134,217,728 bytes" in reasons["bomb.zip"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "bomb.zip", "no.zip"]


def test_only_changed_files_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subtitles = "1\n00:00:01,000 --> 00:00:02,000\n<i>Hello</i>\n"
    folder = written(tmp_path / "in", a_txt="A", b_md="# B\nb", c_srt=subtitles)
    loaded: list[str] = []
    extract = Text.extract

    def noted(self: Text, data: bytes, path: Path) -> Document:
        loaded.append(path.name)
        return extract(self, data, path)

    monkeypatch.setattr(Text, "extract", noted)
    cache = Cache(tmp_path / "cache")
    first = load_collection([folder], cache=cache)
    assert loaded == ["a.txt"]
    again = load_collection([folder], cache=cache)
    assert loaded == ["a.txt"]
    assert (again.text, again.sections, again.places) == (first.text, first.sections, first.places)
    assert again.members == first.members
    written(folder, a_txt="A2", d_txt="D")
    assert load_collection([folder], cache=cache).text.startswith("A2\n")
    assert loaded == ["a.txt", "a.txt", "d.txt"]
