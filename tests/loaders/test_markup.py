"""Tests of markup, data and code: outlines, places, losses, and malicious files."""

from pathlib import Path
from typing import Any

import pytest
from contents import read

from leporello.core.errors import UserError
from leporello.loaders.files import load_bytes

LATEX = r"""% no word
\documentclass{article}
\newcommand{\us}{Our \emph{name}}\newcommand{\two}[2]{#1#2}
\title{On \us}
\begin{document}
\maketitle
\section{First}\label{a}
A na\"{\i}ve ca\-f\'e, 50\% of it,% no word
 joined\footnote{See \textbf{below}.} by \two{x}{y} \cite{k}.
\subsection*{In{\it ner}}
\[ x^2 \]
\begin{tabular}{l|r} one & two \\ \hline 3 & 4 \end{tabular}
\includegraphics[width=1cm]{f.png}
\section{Second} \verb|a_b| \input{more}
\end{document}
never printed
"""
RST = (
    "=====\nWhole\n=====\n\nText\n\nFirst\r\n-----\r\na\n\nInner\n~~~~~\n\nb\n-\nc\n\n"
    "----\n\n.. image:: x.png\n\nSecond\n------\nd"
)
PYTHON = "class A:\n    def f(self):\n        pass\n"
RTF = (
    r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset0 Arial;}}{\header Top\par}"
    r"{\pard\outlinelevel0\b First\par}{\pard Caf\'e9 x{\footnote note} "
    r"{\field{\*\fldinst HYPERLINK "
    '"http://x"'
    r"}{\fldrslt link}} \u8364?\par}{\pard\outlinelevel1 Inner\par}\trowd 1\cell 2\cell\row"
    r"{\*\shppict{\pict\pngblip\bin3 {{{}}{\pard\outlinelevel0 Second\par}}"
)
JATS = (
    '<?xml version="1.0"?><!DOCTYPE article SYSTEM "a.dtd" [<!ENTITY own "mine">]><article><body>'
    "<sec><title>First</title><p>caf&eacute; &own; &odd; <![CDATA[&x;]]></p><ref><name><surname>"
    "Ada</surname><given-names>L</given-names></name></ref><sec><title>Inner</title></sec></sec>"
    "<sec><title>Second</title></sec></body></article>"
)
HEADINGS = [("First", 1), ("Inner", 2), ("Second", 1)]
WHOLE = [("Whole", 1), ("First", 2), ("Inner", 3), ("Second", 2)]


@pytest.mark.parametrize(
    ("name", "content", "excerpt", "place", "outline"),
    [
        ("a.tex", LATEX, "A naïve café, 50% of it,joined (See below.) by x y [k].", "line 8",
         (HEADINGS, {"image", "included file", "preamble", "comment", "text not printed"})),
        ("a.rst", RST, "----\n\n.. image", "line 18", (WHOLE, set())),
        ("a.py", PYTHON, "pass", "line 3", ([], set())),
        ("run", f"#!/usr/bin/python3\n{PYTHON}", "pass", "line 4", ([], set())),
        ("a.rtf", RTF, "Café x (note) link €\nInner\n1\t2\n", "", (HEADINGS, {"header", "image"})),
        ("a.xml", JATS, "café mine &odd; &x;\n\nAda L\n\nInner", "", (HEADINGS, {"entity"})),
    ],
)  # fmt: skip
def test_texts_places_sections_and_losses_are_exact(
    name: str, content: str, excerpt: str, place: str, outline: Any
) -> None:
    document, (headings, lost) = read(content, name), outline
    at = document.text.index(excerpt)
    assert [p.name for p in document.places if p.start <= at < p.end] == [place] * bool(place)
    assert [(s.title, s.level) for s in document.sections] == headings
    assert all(s.title in document.text[s.start :][:50] for s in document.sections)
    assert {loss.what for loss in document.losses} == lost


PIECES = {
    ".tex": (
        "\\[ |$|{|\\section{|\\begin{verbatim}|\\newcommand{\\a|a$b|\\title{|{{{}|\\footnote{{"
        "|\\iffalse |\\iftrue \\else |\\begin{tabular}{l}|&|\\begin{enumerate}|\\item[|\\frac{"
        "|$\\frac{1}{|\\url{|\\verb%"
    ),
    ".rst": "=|==\n|a\n=\n|==\na\n|.. image:: a\n|===\n=== |\n",
    ".rtf": '{\\footnote |{|{\\pict \\bin5 |{\\field{\\*\\fldinst HYPERLINK "a"}}|\\outlinelevel1',
    ".json": '[|{"a":|1,|{\n',
    ".xml": "<a>|<a/>|&amp;|&eacute;|<![CDATA[ &a; |<title>x</title>",
}


@pytest.mark.parametrize("suffix", PIECES)
def test_repeated_pieces_take_linear_time(suffix: str) -> None:
    begin = {".rtf": "{\\rtf1 ", ".xml": "<r>"}.get(suffix, "")
    for piece in PIECES[suffix].split("|"):
        content = begin + piece * (40_000 // len(piece)) + "</r>" * (suffix == ".xml")
        try:
            read(content, f"a{suffix}")
        except UserError as error:
            message = str(error)
            assert message.startswith(f"a{suffix}: ")


def test_authors_and_dates_of_an_article_are_written_in_order() -> None:
    front = (
        "<contrib-group><contrib><name><surname>Wolf</surname><given-names>Ada</given-names></name>"
        "<email>a@x</email></contrib></contrib-group><history><date date-type='received'>"
        "<day>4</day><month>2</month><year>2020</year></date></history>"
    )
    article = f"<article><front><article-meta>{front}</article-meta></front></article>"
    assert read(article, "a.nxml").text == "Ada Wolf\na@x\nreceived: 2020-02-04"


def test_bytes_that_the_encoding_of_xml_lacks_are_losses() -> None:
    korean = '<?xml version="1.0" encoding="euc-kr"?><rss>똠방 각하</rss>'.encode("cp949")
    assert load_bytes(korean, Path("a.xml")).text == "똠방 각하"
    document = load_bytes(b"<?xml version='1.0' encoding='utf-8'?><a>caf\xe9 x</a>", Path("a.xml"))
    assert document.text == "caf\ufffd x"
    assert document.losses[0].characters == 1


def test_blocks_that_a_style_puts_into_a_line() -> None:
    """Reports to authorities have each figure in a block of its own."""
    page = "<div>at $<div style='display:inline;'><b>5.22</b></div> per share.</div><div>Next</div>"
    assert read(page, "a.html").text == "at $5.22 per share.\nNext"
    hidden = "<div hidden><div style='display: inline'>x</div></div><div>a</div><div>b</div>"
    assert read(hidden, "a.html").text == "a\nb"
