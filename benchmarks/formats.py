"""Compares the speed of loaders with other libraries, for each format.

    python -m benchmarks.formats                 # documents of about 0.5 MB of text
    python -m benchmarks.formats --sections 9    # smaller documents

Rates are MB of extracted text per second of CPU time, the best of some runs. The other libraries
extract only text, without outline, places or losses.
"""

from __future__ import annotations

import argparse
import csv
import email
import email.policy
import io
import random
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from contents import TABLES, Cell
from sheet_files import Grid, xlsx
from stories import WRITERS, Story

from leporello.loaders.files import load_bytes

WORDS = [f"word{number}" for number in range(5000)]


def main() -> None:
    """Prints one row per format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sections", type=int, default=100, help="number of sections (5 kB each)")
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    choose = random.Random(0)

    def text(size: int) -> str:
        return " ".join(choose.choices(WORDS, k=size))

    number = options.sections
    paragraphs = [[text(70) for _ in range(8)] for _ in range(number)]
    story = Story([(1 + i % 3, f"Heading {i}", body) for i, body in enumerate(paragraphs)])
    values = ([text(4), text(2), str(i)] for i in range(number * 80))
    rows = [["Item", "Place", "Amount"], *values]
    cells = [[Cell(value) for value in row] for row in rows]
    files = {suffix: write(story) for suffix, write in WRITERS.items()}
    files |= {f".table{Path(name).suffix}": write(cells, 1) for name, write in TABLES.items()}
    files |= {".csv": "".join(",".join(row) + "\n" for row in rows), ".xlsx": xlsx(Grid(rows))}
    files |= {".txt": files[".md"], ".py": files[".md"]}
    for suffix, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        print(f"{suffix:11}", row(suffix, data, options.runs))


def row(suffix: str, data: bytes, runs: int) -> str:
    """Returns the rates of a format."""
    seconds, size = best(lambda: len(load_bytes(data, Path(f"a{suffix}")).text), runs)
    text = f"{size / 1e6:5.2f} MB of text {size / 1e6 / seconds:8.2f} MB/s"
    if suffix not in OTHERS:
        return text
    name, read = OTHERS[suffix]
    other_seconds, size = best(lambda: read(data), runs)
    return f"{text}   {name:12} {size / 1e6 / other_seconds:8.2f} MB/s"


def best(read: Callable[[], int], runs: int) -> tuple[float, int]:
    """Returns the CPU seconds of the fastest run, and the number of characters."""
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        size = read()
        seconds.append(time.process_time() - start)
    return max(min(seconds), 1e-6), size


def by_python_docx(data: bytes) -> int:
    """Returns the number of characters of a document's paragraphs."""
    import docx

    return sum(len(paragraph.text) for paragraph in docx.Document(io.BytesIO(data)).paragraphs)


def by_openpyxl(data: bytes) -> int:
    """Returns the number of characters of a sheet's values."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True)
    rows = book.active.iter_rows(values_only=True)
    return sum(len(str(cell)) for row in rows for cell in row)


def by_lxml(data: bytes) -> int:
    """Returns the number of characters of an HTML page."""
    from lxml.html import fromstring

    return sum(len(str(text)) for text in fromstring(data).itertext())


def by_zip(data: bytes) -> int:
    """Returns the number of characters of an e-book's pages."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return sum(by_lxml(archive.read(n)) for n in archive.namelist() if n.endswith("xhtml"))


def by_email(data: bytes) -> int:
    """Returns the number of characters of a mail's body."""
    body = email.message_from_bytes(data, policy=email.policy.default).get_body()
    return len(body.get_content()) if body else 0


def by_csv(data: bytes) -> int:
    """Returns the number of characters of a CSV file's values."""
    return sum(len(cell) for row in csv.reader(io.StringIO(data.decode())) for cell in row)


OTHERS: dict[str, tuple[str, Callable[[bytes], int]]] = {
    ".docx": ("python-docx", by_python_docx),
    ".xlsx": ("openpyxl", by_openpyxl),
    ".html": ("lxml", by_lxml),
    ".epub": ("lxml", by_zip),
    ".eml": ("email", by_email),
    ".csv": ("csv", by_csv),
}

if __name__ == "__main__":
    main()
