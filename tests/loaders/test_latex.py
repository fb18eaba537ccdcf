r"""Tests of LaTeX: addresses, conditions, formulas, tables and lists."""

from pathlib import Path

import pytest

from leporello import Document
from leporello.loaders.files import load_bytes


def read(body: str, preamble: str = "") -> Document:
    begin = f"\\documentclass{{article}}\n{preamble}\\begin{{document}}\n"
    return load_bytes(f"{begin}{body}\n\\end{{document}}\n".encode(), Path("a.tex"))


def size(document: Document, what: str) -> int:
    return sum(loss.characters for loss in document.losses if loss.what == what)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"see \url{http://x.example/a%20b/f.txt} and", "see http://x.example/a%20b/f.txt and"),
        (r"see \url{http://x.example/a\%20b\_c} and", "see http://x.example/a%20b_c and"),
        (r"see \url|http://x.example/50%| and", "see http://x.example/50% and"),
        (r"\href{http://x.example/a%20b}{the \emph{log}} and",
         "http://x.example/a%20b the log and"),
        (r"\path{C:\Docs%1} and", r"C:\Docs%1 and"),
        (r"\verb|50% of it| and", "50% of it and"),
        (r"\verb*!50%! and", "50% and"),
        (r"\lstinline[language=C]{x % 2} and", "x % 2 and"),
        (r"\mintinline{py}{x % 2} and", "x % 2 and"),
        (r"50\% of it and", "50% of it and"),
        ("note\\footnote{See \\url{http://x.example/a%20b}.} and",
         "note (See http://x.example/a%20b.) and"),
        ("one% comment\n two and", "onetwo and"),
        (r"one\\% comment and", "one"),
    ],
)  # fmt: skip
def test_percent_signs_in_addresses_and_code_begin_no_comment(source: str, text: str) -> None:
    document = read(f"{source} the fee is 12 marks.\nEnd")
    assert document.text.startswith(text)
    assert ("12 marks" in document.text) == ("comment and" not in source)


FEE = "The fee is 12 marks."
OLD = "The fee was 99 marks."


@pytest.mark.parametrize(
    "source",
    [
        "{FEE} \\iffalse {OLD} \\fi",
        "{FEE} \\iffalse {OLD}",
        "\\iffalse {OLD} \\else {FEE} \\fi",
        "\\iftrue\\iffalse {OLD} \\fi {FEE}\\fi",
        "\\begin{comment}\n{OLD}\n\\end{comment}\n{FEE}",
        "% {OLD}\n{FEE}",
        "\\iffalse \\url{a%20b} {OLD} \\fi {FEE}",
    ],
)
def test_text_that_is_not_printed_is_furniture(source: str) -> None:
    document = read(source.replace("{FEE}", FEE).replace("{OLD}", OLD))
    assert FEE in document.text
    assert "99" not in document.text
    assert size(document, "comment") >= len(OLD)
    assert all(loss.furniture for loss in document.losses)


@pytest.mark.parametrize(
    "source",
    [
        "\\ifpdf {FEE} \\else {OLD} \\fi",
        "\\iftrue {FEE} \\else {OLD} \\fi",
        "\\newif\\ifdraft \\ifdraft {OLD} \\fi {FEE}",
        "\\verb|\\iffalse| {FEE} {OLD} \\verb|\\fi|",
        "\\begin{verbatim}\n\\iffalse\n{FEE} {OLD}\n\\fi\n\\end{verbatim}",
        "$a \\iff b$ {FEE} {OLD}",
        "\\ifthenelse{\\boolean{x}}{ {FEE} }{ {OLD} }",
    ],
)
def test_text_of_unknown_conditions_stays(source: str) -> None:
    document = read(source.replace("{FEE}", FEE).replace("{OLD}", OLD))
    assert FEE in document.text
    assert OLD in document.text


def test_arguments_of_figures_and_columns_are_not_text() -> None:
    figure = r"\begin{wrapfigure}[12]{r}[2em]{4in}\caption{Queue}\end{wrapfigure}"
    document = read(rf"{figure} \begin{{multicols}}{{2}}Text\end{{multicols}}")
    assert document.text.split() == ["Queue", "Text"]


def test_text_that_is_not_printed_keeps_lines() -> None:
    document = read(f"\\iffalse\n\\title{{Old}}\n\n\\fi\n{FEE}", "\\title{New}\n")
    (place,) = [p for p in document.places if FEE in document.text[p.start : p.end]]
    assert place.name == "line 8"
    assert document.title == "New"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"$2\frac{1}{2}$", "2 1/2"),
        (r"$\frac12$", "1/2"),
        (r"$\dfrac{a+b}{c}$", "(a+b)/c"),
        (r"\(\frac{\frac{1}{2}}{3}\)", "(1/2)/3"),
        (r"\nicefrac{3}{4} cup", "3/4 cup"),
        (r"$10^{-6}$", "10^-6"),
        (r"$x^{n+1}$", "x^(n+1)"),
        (r"10\textsuperscript{6}", "10^6"),
        (r"4\textsuperscript{th}", "4th"),
        (r"CO$_2$ and H$_{2}$O", "CO2 and H2O"),
        (r"$25\,^{\circ}$C", "25 °C"),
        (r"$x \leq 5 \times 10^{3}$", "x ≤ 5 × 10^3"),
        (r"$\alpha \approx \Omega$", "α ≈ Ω"),
        (r"$\sqrt{x+1}$", "√(x+1)"),
        (r"$5\ \mathrm{kg}$ of $\text{coal}$", "5 kg of coal"),
        (r"$\mathscr{L} = \frac{1}{2}$", r"$\mathscr{L} = 1/2$"),
        (r"\[ x^{2} = \frac{1}{4} \]", "x^2 = 1/4"),
        (
            "\\begin{align}\na &= \\frac{1}{2} \\label{e} \\\\\nb &= 3^{6}\n\\end{align}",
            "a = 1/2\nb = 3^6",
        ),
        (r"\$5 and 5\,\%", "$5 and 5 %"),
        (r"\SI{5e3}{\metre\per\second\squared}", "5e3 m/s^2"),
        (r"\SIrange{1}{2}{\kilo\gram} at \qty{5}{\degreeCelsius}, \ang{30}", "1 2 kg at 5 °C, 30°"),
    ],
)
def test_formulas_are_text(source: str, text: str) -> None:
    assert read(source).text == text


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        (r"Port & 2023 & 2024 \\ \hline Riga & & 13 \\ Libau & 41 & \\",
         ["Port\t2023\t2024", "Riga\t\t13", "Libau\t41\t"]),
        (r"a & b \\[2pt] \midrule & d \\* \cmidrule(lr){1-2} e & f", ["a\tb", "\td", "e\tf"]),
        (r"\multicolumn{2}{c}{Ships} & x \\ a & b & c", ["Ships\tShips\tx", "a\tb\tc"]),
        (r"\multicolumn{2}{c}{\textbf{All}} \\ a & b", ["All", "a\tb"]),
        (r"\multirow{2}{*}{Riga} & 1 & 2 \\ \cline{2-3} & 3 & 4 \\ Libau & & 6",
         ["Riga\t1\t2", "Riga\t3\t4", "Libau\t\t6"]),
        (r"\multirow{2}{*}{Ship} & \multicolumn{2}{c}{2020} \\ & Tons & Crew \\ Dal & 20 & 3",
         ["Ship\t2020 Tons\t2020 Crew", "Dal\t20\t3"]),
        (r"\multirow[t]{2}{1cm}{Riga} & 1 \tabularnewline & 3", ["Riga\t1", "Riga\t3"]),
        (r"a\footnote{n} & \url{http://x/a%20b} \\ 5\,\% \& more & $\frac{1}{2}$",
         ["a (n)\thttp://x/a%20b", "5 % & more\t1/2"]),
        (r"\makecell{a\\b} & {c & d} \\ \rowcolor{gray} e & \cellcolor[gray]{0.9} f",
         ["a b\tc d", "e\tf"]),
        (r"\begin{tabular}{l} x \\ y \end{tabular} & b \\ c & d", ["x; y\tb", "c\td"]),
        (r"& & \\ a & & b \\", ["a\t\tb"]),
        (r"& \multicolumn{2}{c}{F1} \\ Model & dev & test \\ \midrule A & 1 & 2 \\ \midrule B & &",
         ["Model\tF1 dev\tF1 test", "A\t1\t2", "B\t\t"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (r"\begin{tabular}{l|r@{}r}", r"\end{tabular}"),
        (r"\begin{tabular*}{\textwidth}{lrr}", r"\end{tabular*}"),
        (r"\begin{tabularx}{9cm}{lXX}", r"\end{tabularx}"),
        (r"\begin{longtable}[c]{lrr}", r"\end{longtable}"),
    ],
)
def test_cells_are_in_their_columns(begin: str, end: str, source: str, rows: list[str]) -> None:
    document = read(f"Before\n\n{begin}\n{source}\n{end}\n\nAfter")
    assert document.text == "\n".join(["Before", "", *rows, "", "After"])


def test_rows_of_tables_have_the_places_of_their_lines() -> None:
    document = read("\\begin{tabular}{ll}\na & b \\\\\nc & d \\\\\n\\end{tabular}\nEnd")
    places = [(p.name, document.text[p.start : p.end].strip()) for p in document.places]
    assert places == [("line 4", "a\tb"), ("line 5", "c\td"), ("line 7", "End")]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (r"\begin{enumerate} \item a \item b \end{enumerate}", ["1. a", "2. b"]),
        (r"\begin{itemize} \item a \item[+] b \end{itemize}", ["- a", "+ b"]),
        (r"\begin{enumerate}[start=4] \item a \item b \end{enumerate}", ["4. a", "5. b"]),
        (r"\begin{enumerate}[label=(\alph*)] \item a \item b \end{enumerate}", ["(a) a", "(b) b"]),
        (r"\begin{enumerate}[label=\textbf{\Roman*.}, start=9] \item a \end{enumerate}", ["IX. a"]),
        (r"\begin{enumerate}[i)] \item a \item b \end{enumerate}", ["i) a", "ii) b"]),
        (r"\begin{enumerate} \item a \item[4b.] b \item c \end{enumerate}",
         ["1. a", "4b. b", "2. c"]),
        (
            r"\begin{enumerate} \item a \begin{enumerate} \item b \item c \end{enumerate} \item d"
            r" \begin{itemize} \item e \end{itemize} \end{enumerate}",
            ["1. a", "", "(a) b", "(b) c", "", "2. d", "", "- e"],
        ),
        (r"\begin{description} \item[Fee] 12 marks \item[\textbf{Rent}] 9 \end{description}",
         ["Fee 12 marks", "Rent 9"]),
        (r"\begin{enumerate} \item a\footnote{n} \end{enumerate}", ["1. a (n)"]),
    ],
)  # fmt: skip
def test_items_have_their_numbers_and_labels(source: str, lines: list[str]) -> None:
    assert read(source).text.split("\n") == lines
