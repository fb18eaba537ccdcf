"""Texts of what a format marks things with, many times over, in every loader and chunker.

Nothing takes longer than in proportion to its text; counted in seconds of computing, so one that
is slow is tried again with a quarter of the text.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from leporello.core.environment.classes import built_ins
from leporello.core.errors import UserError
from leporello.core.protocols import KINDS
from leporello.core.records import Document
from leporello.loaders.files import load_bytes

_SIZE = 60_000  # characters
_NOTICED, _MOST, _TIMES = 0.5, 20, 8  # seconds; seconds at most; times as long, for 4 times as much
_MARKS = {
    ".html": ("<p>", "<b>", "</b>", "</i>", "<i>", "<table>", "<tr>", "<td>", "</td>", "<li>",
        "<ul>", "<a href=x>", "<!--", "-->", "<![CDATA[", "&amp;", "&", "&#", "<", ">", "</",
        "<h1>", "</h1>", "<pre>", "<script>", "<style>", "<br>", "<font>", "<select>",
        "<option>", "<svg>", "<math>", "<!DOCTYPE", "<?x", '"', '<a b="', "<form>",
        "<template>", "<p\n", "<center>", "<nobr>", "<button>", "<span>", "<div>x", "<title>",
        "<frameset>", "<dd>", "<rt>", '<img alt="a">'),
    ".xml": ("<a>", "</a>", "<a/>", "<sec>", "<title>t</title>", "<p>x</p>", "<!--", "-->",
        "<![CDATA[x]]>", "&amp;", "&x;", "&nbsp;", "&#65;", '<a b="c">', "<?x?>", "<", ">", '"',
        "<head>h</head>", '<pb n="1"/>', "<table><row><cell>x</cell></row></table>",
        "<ref>x</ref>", "<div><head>x</head></div>"),
    ".md": ("#", "# ", "##", "# a\n", "=", "===\n", "-", "---\n", "a\n===\n", "a\n---\n", "`",
        "```", "```\n", "~~~\n", "*", "**", "_", "[", "](", "![", "[a]:", "|", "|a", "|-",
        "| a | b |\n", "|-|-|\n", ">", "> ", ">>", "- ", "* ", "+ ", "1. ", "<", "<a", "<!--",
        "\\", "    a\n", "\t", "\n", "\n\n", " \n", "# \n", "[^1]", "[^1]: ", "$$", "<details>",
        "&", "&#", "---\na: b\n", "#a", "Chapter 1\n", "1.1 ", "I. ", "1.\n", "(a) ", "A B C\n",
        "THE END\n"),
    ".tex": ("\\section{", "\\section", "\\section{a}", "}", "{", "\\", "\\\\", "\\begin{",
        "\\begin{a}", "\\end{a}", "\\begin{document}", "\\end{document}", "%", "%\n", "$", "$$",
        "\\[", "\\]", "\\(", "\\newcommand{\\a}{b}", "\\newcommand", "\\def\\a{", "\\a", "\\a{",
        "\\footnote{", "\\emph{", "\\textbf{a}", "\\item", "&", "~", "\\verb|", "\\verb",
        "\\begin{verbatim}", "\\begin{comment}", "\\end{comment}", "\\title{", "\\include{a}",
        "\\label{", "\\ref{a}", "[", "\\section[", "\\section*{", "\\newcommand{\\a}[1]{",
        "\\caption{", "\\begin{tabular}{", "\n\n", "\\ ", "\\par", "\\begin{figure}",
        "\\end{figure}"),
    ".rst": ("=", "===\n", "a\n===\n", "---\n", "a\n---\n", ".. ", ".. a::", ".. image:: x\n",
        ".. include:: x\n", "::\n", "::\n\n    a\n", "*", "**", "``", "`", "`a`_", "_", "|",
        "|a|", "+--+\n", "+-+-+\n", "| a |\n", "- a\n", "1. a\n", ":a:", "[1]_", ".. [1] a\n",
        "\n", "\n\n", "    ", ">>> ", "~~~\n", "^^^\n", "==\na\n==\n", ".. _a:", "==== ====\n",
        "a\n  b\n"),
    ".srt": ("1\n", "00:00:01,000 --> 00:00:02,000\n",
        "1\n00:00:01,000 --> 00:00:02,000\na\n\n", "{\\", "{\\a}", "{", "}", "<i>", "</i>",
        "</i>\n\n", "<", ">", "\n", "\n\n", "-->", " --> ", "00:", "WEBVTT\n", "WEBVTT",
        "NOTE ", "NOTE\n", "STYLE\n", "<v a>", "<00:00:01.000>", "<c.a>", "&lt;", "{\\an8}",
        "- a\n", " \n", "\r", "\r\n", "{\\\\"),
    ".rtf": ("{", "}", "\\par ", "\\b ", "\\", "\\'e9", "\\'", "\\u123?", "\\u", "{\\*\\a ",
        "{\\footnote a}", "{\\footnote ", "{\\header ", "{\\pict ", "\\bin5 ", "\\bin9",
        "\\cell ", "\\row ", "\\trowd", "\\outlinelevel1 ", "\\outlinelevel1 a\\par ", "\\tab ",
        "{\\fonttbl ", "\\uc1", "a", "\n", "\\\\", "\\{", "\\}",
        "{\\field{\\*\\fldinst x}{\\fldrslt y}}", "\\line "),
    ".py": ("def a():\n", "class A:\n", "    ", "\t", "(", "[", "{", ")", "}", '"""', "'''",
        '"', "'", "#", "# a\n", "//", "/*", "*/", "/**", "\\\n", "@a\n", "if a:\n", "lambda ",
        'f"{', "`", "${", "function a() {\n", "=> ", "; ", "\n", "\n\n", "a = ", "import a\n",
        "public void a(", "template<", "<", ">", "::", "#define a ", "#if a\n", "fn a() {",
        "struct a {", "impl<", "[a]\n", "a:\n", "- a\n", "a: b\n", 'R"(', "<<EOF\n", "<?php",
        "end\n"),
    ".json": ('{"a":', "[", '{"a":[', '"a",', "1,", '"', "\\u0041", '"\\', "{", "null,", "{}",
        "[],", '{"a":1}\n', "-", "1e5,", " ", "\n", '{"a":"b"},'),
    ".csv": (",", '"', '"a",', "a,b\n", '""', '"\n', "\n", "\t", ";", "|", ",\n", " ",
        '"a""b",', "a;b\n", ",,,\n", "1,2\n", "\r", "\r\n", "'"),
    ".eml": ("From: a\n", "Subject: x\n", "Subject: =?utf-8?q?", "=?utf-8?b?YQ==?=", " a\n",
        "--a\n", "--a\nContent-Type: text/plain\n\nx\n", "Content-Type: ", "; a=b", "; a*0=b",
        "; a*1=b", "<", ">", "@", ",", '"', "(", "(a)", "\\", "To: a@b,", "a@b, ", "<a@b>, ",
        "References: <a>", "<a@b> ", "From a Mon Jan  1 00:00:00 2024\n",
        "From a 2024\nFrom: b\nSubject: x\n\ny\n", "=\n", "=41", "\n", "Received: from a by b;",
        "[", "]", ":", ";", ".", "Date: "),
    ".txt": ("a", "a ", "a. ", "A. ", "Mr. ", ". ", ".", "...", "! ", "? ", '." ', ".) ", "(",
        ")", '"', "\u201c", "\u201d", "'", "\n", "\n\n", " \n", "\t", "  ", "\x0c", "\r",
        "\r\n", "e.g. ", "1. ", "1.1. ", "I. ", "CHAPTER I\n", "Chapter 1\n", "Chapter",
        "\xa7 1 ", "Article 1.\n", "A\n", "AB ", "- ", "* ", "\u2014", "-", "_", "\xe9",
        "\u0301", "\u6f22", "\u3002", "\u6f22\u3002", "\u30fc", "\u3042", "\u0e44", "\u200b",
        "\u2028", "\xa0", "\U0001f600", "\ud800", "1", "1,", "1.", "1,000.5 ", "http://a.b/",
        "a@b.c ", "A:", "Q: ", "A: b\n", "BOB: ", "No. ", "U.S. ", "vs. ", "A.B.", "St.",
        "(1) ", "(a)", "[1]", "===", "___", "***", "* * *\n", ". . .", "|", "|a|b|\n", "a\tb\n",
        "Contents\n", "a ..... 1\n", "1 a\n", "II\n", "i. ", "John Smith ", "Smith, J. ",
        "and ", "the ", "Ph.D. "),
}  # fmt: skip
_BEGINNINGS = {
    ".html": ("", "<html><body>"),
    ".xml": ("", '<?xml version="1.0"?><TEI><text><body>'),
    ".md": ("", "# T\n\n"),
    ".tex": ("", "\\documentclass{a}\\begin{document}"),
    ".rst": ("", "T\n=\n\n"),
    ".srt": ("1\n00:00:01,000 --> 00:00:02,000\n", "WEBVTT\n\n00:01.000 --> 00:02.000\n"),
    ".rtf": ("{\\rtf1 ",),
    ".py": ("", "a\n"),
    ".json": ("", '{"cells":[', "["),
    ".csv": ("", "a,b,c\n1,2,3\n"),
    ".eml": (
        "From: a\nSubject: b\n\n",
        "From: a\nSubject: b\n",
        'From: a\nSubject: b\nContent-Type: multipart/mixed; boundary="a"\n\n',
    ),
    ".txt": ("",),
}
_ALIKE = {
    ".py": (".js", ".c", ".java", ".go", ".yaml", ".toml", ".rs", ".php", ".sql"),
    ".json": (".ipynb", ".jsonl"),
    ".csv": (".tsv",),
    ".srt": (".vtt",),
    ".eml": (".mbox",),
}
_WAYS: tuple[Callable[[str, str, int], str], ...] = (
    lambda a, _, size: a * (size // len(a)),
    lambda a, _, size: f"{a}\n" * (size // (len(a) + 1)),
    lambda a, _, size: f"{a}\n\n" * (size // (len(a) + 2)),
    lambda a, _, size: f"{a} " * (size // (len(a) + 1)),
    lambda a, _, size: f"{a}x" * (size // (len(a) + 1)),
    lambda a, b, size: (a + b) * (size // len(a + b)),
    lambda a, b, size: a + b * (size // len(b)),
    lambda a, b, size: a * (size // len(a + b)) + "x" + b * (size // len(a + b)),
    lambda a, b, size: a * (size // 2 // len(a)) + b * (size // 2 // len(b)) + a,
)


@dataclass(frozen=True)
class Shape:
    """A hostile text.

    Attributes:
        suffix: Suffix of its file.
        begins: What stands before.
        first: A mark.
        second: Another one.
        way: Number of how they make a text.
    """

    suffix: str
    begins: str
    first: str
    second: str
    way: int

    @property
    def name(self) -> str:
        """In a line."""
        return f"{self.suffix}: way {self.way} of {self.first!r} and {self.second!r}"

    @property
    def command(self) -> str:
        """Asks it anything."""
        return f"leporello ask text{self.suffix} 'Who?' --pipeline best-sentence"

    def text(self, size: int) -> str:
        """Returns the text of about so many characters."""
        return self.begins + _WAYS[self.way](self.first, self.second, size)

    def run(self, folder: Path) -> str | None:
        """Loads it, and divides it by all chunkers."""
        file = folder / f"text{self.suffix}"
        file.write_bytes(self.text(_SIZE).encode("utf-8", "surrogatepass"))

        def load(size: int) -> object:
            return load_bytes(self.text(size).encode("utf-8", "surrogatepass"), file)

        told = [_slow(f"loading {file.name}", load)]
        told += [
            _slow(name, lambda size, c=chunker: [*c.chunk(Document("d", self.text(size)))])  # type: ignore[misc]  # a default of its own
            for name, chunker in _chunkers()
        ]
        return next(filter(None, told), None)


@cache
def _chunkers() -> tuple[tuple[str, Any], ...]:
    classes = built_ins(KINDS["chunker"])
    made = [(name, cls()) for name, cls in classes.items() if name not in ("Parts", "Whole")]
    made += [(of, classes["Recursive"](language=of)) for of in ("python", "markdown", "latex")]
    return tuple(made)


class _Late(BaseException):
    """The text takes too long."""


def _raise(*_: object) -> None:
    raise _Late


def _seconds(work: Callable[[int], object], size: int) -> float:
    """Returns how long it computes, `_MOST` if longer."""
    before = signal.signal(signal.SIGVTALRM, _raise)
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST)
    began = time.process_time()
    try:
        work(size)
    except UserError:
        pass
    except _Late:
        return _MOST
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return time.process_time() - began


def _slow(what: str, work: Callable[[int], object]) -> str | None:
    try:
        took = _seconds(work, _SIZE)
        if took < _NOTICED or took < _TIMES * (before := _seconds(work, _SIZE // 4)):
            return None
    except Exception as error:
        return f"{what}: traceback: {type(error).__name__}: {error}"[:300]
    return f"{what}: {took:.1f} s for {_SIZE:,} characters, {before:.2f} s for a quarter"


def case(random: Random, number: int) -> Shape:
    """Formats in turn."""
    kind = [*_MARKS][number % len(_MARKS)]
    marks = _MARKS[kind]
    return Shape(
        random.choice((kind, *_ALIKE.get(kind, ()))),
        random.choice(_BEGINNINGS[kind]),
        random.choice(marks),
        random.choice(marks),
        random.randrange(len(_WAYS)),
    )
