"""Shards: for any size, order and reader their examples are those of the task."""

import dataclasses
import json
import random
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from row_files import json_lines as lines

from leporello.cache.store import Cache
from leporello.core.errors import UserError
from leporello.core.protocols import Task
from leporello.core.records import Document, DocumentRows, Example
from leporello.engine.selection import by_document
from leporello.executors.channel import dump, load
from leporello.jobs.shards import Shard, TaskReader, cut, layout_of
from leporello.tasks import JsonLines, Pan21, Scrolls, json_lines, layouts
from leporello.tasks.jsonl.scan import Scan
from leporello.tasks.official import benchmark as first_pass

Rows = list[dict[str, Any]]
Shape = list[tuple[Any, ...]]

few = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
BYTES = st.sampled_from([1, 300, 2_000, 10**9])


@dataclass(frozen=True)
class Stories:
    """A plug-in without a layout, with some questions on each story."""

    questions: tuple[int, ...] = (2, 1, 5, 1, 1, 3)

    metrics = ("f1",)

    def examples(self) -> Iterator[Example]:
        for number, count in enumerate(self.questions):
            document = Document(f"d{number}", f"story {number} é" * number)
            for question in range(count):
                yield Example(f"{number}-{question}", document, f"Q{question}?")

    def fingerprint(self) -> str:
        return "1"


def questions(stories: int = 7, per_story: int = 5) -> Rows:
    """Returns rows in the form of SCROLLS: shuffled, some with two references, one faulty."""
    texts = [f"A fox sat.\n\nOn gate {number}. " * (number + 1) for number in range(stories)]
    rows: Rows = [
        {"id": f"{place}-{q}", "input": f"Q{q}?\n\n{text}", "output": f"gold {reference}"}
        for place, text in enumerate(texts)
        for q in range(per_story)
        for reference in range(1 + q % 2)
    ]
    random.Random(1).shuffle(rows)
    return [*rows, {"id": "faulty", "input": "no question", "output": "x"}]


def scrolls(folder: Path) -> Task:
    (folder / "scrolls").mkdir()
    with zipfile.ZipFile(folder / "scrolls/qasper.zip", "w") as archive:
        archive.writestr("qasper/validation.jsonl", lines(questions()))
    return Scrolls("qasper", data=folder)


def pan21(folder: Path) -> Task:
    for number in range(1, 13):
        (folder / f"problem-{number}.txt").write_text(f"One {number}.\n\nTwo.")
    (folder / "truth-problem-3.json").write_text("[]")
    return Pan21(folder)


def mixed_rows(folder: Path) -> Task:
    """Returns rows in mixed order, with texts, ids and files, one of which is missing."""
    (folder / "a.md").write_text("# Heading\n\ntext")
    rows: Rows = [
        {"id": "1", "document_id": "A", "evidence": ["late"]},
        {"id": "2", "document_path": "a.md", "references": ["x"]},
        {"id": "3", "document": "inline"},
        {"id": "4", "document_id": "A", "document": "given late"},
        {"id": "5", "document_id": "A", "title": "T", "evidence": ["missing"]},
        {"id": "6", "document_path": "gone.txt"},
        {"id": "7", "document": "inline"},
        {"id": "8", "document_path": "./a.md"},
    ]
    (folder / "rows.jsonl").write_bytes(lines(rows))
    return JsonLines(folder / "rows.jsonl", instruction="Say.")


# One task for each way to read a layout; the contract of tasks tests the layouts of all tasks.
TASKS: dict[str, Callable[[Path], Task]] = {
    "JsonLines": mixed_rows,
    "Scrolls": scrolls,
    "Pan21": pan21,
    "plug-in": lambda _: Stories(),
}


@pytest.fixture(scope="module", params=TASKS)
def task(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Task:
    return TASKS[request.param](tmp_path_factory.mktemp("data"))


def shape(groups: Iterable[Sequence[Example]]) -> list[Shape]:
    shapes = []
    for group in groups:
        document = group[0].document
        assert all(example.document is document for example in group)
        fields = (document.id, document.text, document.title, document.parts, document.sections)
        shapes.append([(fields, dataclasses.replace(e, document=NOWHERE)) for e in group])
    return shapes


NOWHERE = Document("", "")


def copied(task: Any) -> Task:
    copy: Task = dataclasses.replace(task)
    return copy


def iterated(task: Task, limit: int | None = None) -> list[Shape]:
    return shape(group for _, group in by_document(islice(task.examples(), limit)))


def read(reader: TaskReader, shards: Iterable[Shard]) -> list[Shape]:
    return shape(group for shard in shards for group in reader.documents(shard))


@pytest.mark.integration
@few
@given(
    examples=st.integers(1, 12),
    size=BYTES,
    limit=st.none() | st.integers(0, 60),
    chance=st.randoms(use_true_random=False),
)
def test_shards_contain_all_examples_of_the_task(
    task: Task, examples: int, size: int, limit: int | None, chance: random.Random
) -> None:
    """In any order, from any reader, after pickling."""
    shards = [*cut(layout_of(task, "t"), examples, size, limit)]
    assert [shard.number for shard in shards] == [*range(len(shards))]
    expected = iterated(task, limit)
    assert read(TaskReader(task, "t"), shards) == expected
    sent = [load(dump(shard)) for shard in shards]
    assert sent == shards
    chance.shuffle(sent)
    readers = [TaskReader(copied(task), "t") for _ in range(2)]
    parts = {shard.number: read(chance.choice(readers), [shard]) for shard in sent}
    assert [part for number in sorted(parts) for part in parts[number]] == expected


@pytest.mark.integration
@few
@given(examples=st.integers(1, 4), open_at_once=st.integers(2, 4))
def test_several_shards_may_be_open_at_once(task: Task, examples: int, open_at_once: int) -> None:
    """Each resumes at its document, and an abandoned one does not affect others."""
    shards = [*cut(layout_of(task, "t"), examples)]
    reader = TaskReader(task, "t")
    parts: dict[int, list[Any]] = {shard.number: [] for shard in shards}
    pending = iter(shards)
    active = [(s, reader.documents(s)) for s in islice(pending, open_at_once)]
    next(reader.documents(shards[0]))
    while active:
        shard, documents = active.pop(0)
        if (group := next(documents, None)) is not None:
            parts[shard.number] += shape([group])
            active.append((shard, documents))
        else:
            active += [(s, reader.documents(s)) for s in islice(pending, 1)]
    assert [group for part in parts.values() for group in part] == iterated(task)


LAYOUTS = st.lists(
    st.builds(DocumentRows, st.integers(1, 9), st.integers(0, 50), st.none()), max_size=40
)


@given(layout=LAYOUTS, examples=st.integers(1, 20), size=st.integers(1, 120))
def test_a_shard_ends_with_the_document_that_fills_it(
    layout: list[DocumentRows], examples: int, size: int
) -> None:
    """Neither earlier nor later; a limit changes only the last shard."""
    shards = [*cut(iter(layout), examples, size)]
    assert [document for shard in shards for document in shard.documents] == layout
    for number, shard in enumerate(shards):
        documents = [document for earlier in shards[:number] for document in earlier.documents]
        assert (shard.number, shard.first_document) == (number, len(documents))
        assert shard.first_example == sum(document.examples for document in documents)
        before = shard.documents[:-1]
        assert sum(document.examples for document in before) < examples
        assert sum(document.bytes for document in before) < size
        is_full = shard.examples >= examples or sum(d.bytes for d in shard.documents) >= size
        assert is_full or number == len(shards) - 1
    limit = sum(document.examples for document in layout) // 2
    limited = [*cut(layout, examples, size, limit)]
    assert sum(shard.examples for shard in limited) == limit
    assert limited[:-1] == shards[: max(len(limited) - 1, 0)]


ROWS = st.lists(
    st.tuples(
        st.sampled_from("ABCDE"), st.booleans(), st.text(max_size=5), st.booleans(), st.booleans()
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.integration
@given(values=ROWS, examples=st.integers(1, 8))
def test_the_order_of_rows_does_not_matter(values: list[Any], examples: int) -> None:
    """Rows that are sorted by document have the same examples."""
    rows: list[tuple[str, bytes]] = []
    for number, (name, has_text, title, is_blank, has_id) in enumerate(values):
        row: dict[str, Any] = {"id": str(number), "question": title}
        row |= {"document_id": name} if has_id else {"document": f"text {name}"}
        if has_id and (has_text or name not in {before for before, _ in rows}):
            row["document"] = f"text {name} é"
        ending = b"\r\n\n" if is_blank else b"\n"
        rows.append((name + str(has_id), json.dumps(row).encode() + ending))
    first = {name: number for number, (name, _) in reversed([*enumerate(rows)])}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_bytes(b"".join(row for _, row in rows))
        task = JsonLines(path)
        expected = iterated(task)
        assert read(TaskReader(task, "t"), cut(layout_of(task, "t"), examples)) == expected
        path.write_bytes(b"".join(row for _, row in sorted(rows, key=lambda r: first[r[0]])))
        ordered = JsonLines(path)
        assert read(TaskReader(ordered, "t"), cut(layout_of(ordered, "t"), examples)) == expected
        assert len(ordered) == len(task) == len(rows)


# -- number of passes ----------------------------------------------------------------------------


def forbidden(*_: object) -> Any:
    raise AssertionError("called")


@pytest.mark.parametrize("make", [mixed_rows, scrolls])
def test_a_worker_requires_only_the_shard(
    make: Callable[[Path], Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make(tmp_path)
    expected, shards = iterated(task), [*cut(layout_of(task, "t"), 3)]
    monkeypatch.setattr(json_lines, "cached_layout", forbidden)
    monkeypatch.setattr(first_pass.RowIndex, "read", forbidden)
    json_lines._cached_layout.cache_clear()
    assert read(TaskReader(copied(task), "t"), shards) == expected


def test_a_plug_in_is_iterated_once() -> None:
    """It is iterated again only for an earlier shard."""
    passes = []

    class Counted(Stories):
        def examples(self) -> Iterator[Example]:
            passes.append(1)
            return super().examples()

    task = Counted()
    shards = [*cut(layout_of(task, "t"), 1)]
    reader = TaskReader(task, "t")
    read(reader, shards[1::2])
    assert len(passes) == 2  # one for the layout
    read(reader, shards[:1])
    assert len(passes) == 3


def test_a_plug_in_may_override_only_the_examples(tmp_path: Path) -> None:
    """The inherited `layout` would contain the documents that it omits."""

    class Fewer(JsonLines):
        def examples(self) -> Iterator[Example]:
            return islice(super().examples(), 2)

    mixed_rows(tmp_path)
    task = Fewer(tmp_path / "rows.jsonl")
    shards = [*cut(layout_of(task, "t"))]
    assert sum(shard.examples for shard in shards) == 2
    assert read(TaskReader(task, "t"), shards) == iterated(task)


def test_mistakes_of_plug_ins_are_reported() -> None:
    document = Document("d", "text")

    class Odd(Stories):
        def examples(self) -> Iterator[Example]:
            yield from [Example("a", document), Example("b", Document("e", ""))]

        def examples_of(self, *_: object) -> Iterator[Example]:
            return self.examples()

        def layout(self) -> Iterator[Any]:
            yield from ("2", DocumentRows(2, 4))

    with pytest.raises(UserError, match="task 't' yields a layout with '2', not a DocumentRows"):
        [*layout_of(Odd(), "t")]
    for documents in ((DocumentRows(2, 4),), (DocumentRows(1, 4),) * 3):
        with pytest.raises(UserError, match="its data have changed; run again"):
            [*TaskReader(Odd(), "t").documents(Shard(0, 0, 0, documents))]


@pytest.mark.parametrize("make", [mixed_rows, scrolls])
def test_changed_data_are_reported(make: Callable[[Path], Task], tmp_path: Path) -> None:
    """A worker with a changed file raises, and does not read other documents instead."""
    task = make(tmp_path)
    shards = [*cut(layout_of(task, "t"), 3)]
    for path in tmp_path.rglob("*.*"):
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("qasper/validation.jsonl", lines(reversed(questions())))
        else:
            path.write_bytes(b"{}\n")
    with pytest.raises(UserError, match=r"has changed while it was read|rows.jsonl:1: field 'id'"):
        read(TaskReader(task, "t"), shards)


# -- cached layouts ------------------------------------------------------------------------------


def test_all_runs_scan_a_file_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layout is cached by hash; other parameters, or a damaged entry, scan the file again."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))
    task = mixed_rows(tmp_path)
    expected, fingerprint = iterated(task), task.fingerprint()
    (entry,) = (tmp_path / "cache/layouts").iterdir()
    for content, scan in ((entry.read_bytes(), forbidden), (entry.read_bytes()[:-9], Scan._rows)):
        entry.write_bytes(content)
        monkeypatch.setattr(Scan, "_rows", scan)
        json_lines._cached_layout.cache_clear()
        assert iterated(task) == expected
        assert task.fingerprint() == fingerprint
    monkeypatch.setattr(Scan, "_rows", forbidden)
    with pytest.raises(AssertionError):
        iterated(JsonLines(tmp_path / "rows.jsonl", ignore=("x",)))
    cache = Cache(tmp_path / "cache")
    assert [e.kind for e in cache.remove(cache.surplus(0))] == ["layouts"]
    assert iterated(task) == expected


def test_a_read_only_cache_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process then scans the file again."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "file"))
    assert len(iterated(mixed_rows(tmp_path))) == 4


def test_a_disk_that_is_too_small_for_a_layout_is_reported() -> None:
    message = "No space left on device; free disk space"
    with pytest.raises(UserError, match=message), Path("/dev/full").open("wb") as file:
        layouts._append(file, b"[]" * 10_000)


@pytest.mark.integration
def test_the_memory_of_a_layout_does_not_grow_with_its_rows(tmp_path: Path) -> None:
    rows = ({"id": str(n), "document_id": f"d{n}", "document": "w " * 20} for n in range(5_000))
    (tmp_path / "rows.jsonl").write_bytes(lines(rows))
    tracemalloc.start()
    task = JsonLines(tmp_path / "rows.jsonl")
    assert sum(shard.examples for shard in cut(layout_of(task, "t"))) == 5_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_200_000
