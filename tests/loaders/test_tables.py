"""Tests of tables in sheets and text files: headers, several tables, merged and hidden cells."""

import datetime
import io
import re
import zipfile
from itertools import product
from pathlib import Path
from struct import pack

import openpyxl
import pytest
import xlsxwriter
from contents import read
from hypothesis import given
from hypothesis import strategies as st
from sheet_files import ALL, SHEETS, Cell, Grid, grid, xls, xlsx
from stories import saved, zipped

from leporello import Document, Span
from leporello.chunkers import Rows
from leporello.core.errors import UserError
from leporello.loaders import Csv, Sheets
from leporello.loaders.files import load_bytes
from leporello.loaders.tables.rows import written
from leporello.text.outline import place_of_span


def shown(document: Document) -> str:
    """Returns the text with ` | ` between cells."""
    return document.text.replace("\t", " | ")


def lost(document: Document) -> dict[str, tuple[str, int, int]]:
    """Returns place, characters and count of the losses by their kind."""
    return {loss.what: (loss.place, loss.characters, loss.count) for loss in document.losses}


def cases(text: str) -> dict[str, tuple[str, str]]:
    """Returns the file and the expected text of each case after a line with `##` and its name."""
    parts = (block.strip("\n").split("\n", 2) for block in text.split("## ")[1:])
    return {name: (content.replace("\\n", "\n"), expected) for name, content, expected in parts}


# Files in every format, and their texts: a name, the file as CSV in one line, and the text.
FILES = cases(r"""
## a title and notes apart
,,\nFleet of Borg,,\n,,\nShip,Tons,Crew\nDal,20,3\nSven,30,4\n,,\nSource: the port,,
Fleet of Borg
Ship | Tons | Crew
Ship: Dal | Tons: 20 | Crew: 3
Ship: Sven | Tons: 30 | Crew: 4

Source: the port
## words over words
Town,2023,,2024,\n,Ships,Crew,Ships,Crew\nBorg,6,60,7,70\nDal,1,2,3,4
Town | 2023 |  | 2024
 | Ships | Crew | Ships | Crew
Town: Borg | 2023 / Ships: 6 | 2023 / Crew: 60 | 2024 / Ships: 7 | 2024 / Crew: 70
Town: Dal | 2023 / Ships: 1 | 2023 / Crew: 2 | 2024 / Ships: 3 | 2024 / Crew: 4
## words over words without figures
Name,Contact,\n,Mail,Phone\nRolf,rolf@b,+47 a\nEva,eva@d,+47 b
Name | Contact
 | Mail | Phone
Name: Rolf | Contact / Mail: rolf@b | Contact / Phone: +47 a
Name: Eva | Contact / Mail: eva@d | Contact / Phone: +47 b
## a header of two rows above a blank row
Revenue\nIn CHF,,,2023\n,Sales,Profit,Costs\n\nNorth,9,8,7\nSouth,6,5,4
Revenue
In CHF |  |  | 2023
 | Sales | Profit | Costs
In CHF: North | Sales: 9 | Profit: 8 | 2023 / Costs: 7
In CHF: South | Sales: 6 | Profit: 5 | 2023 / Costs: 4
## units above missing figures
Country,Grown,Sold\n,metric tons,in crowns\nDal,nd,3\nMo,4,5
Country | Grown | Sold
 | metric tons | in crowns
Country: Dal | Grown / metric tons: nd | Sold / in crowns: 3
Country: Mo | Grown / metric tons: 4 | Sold / in crowns: 5
## units below names
Ship,Length,Weight\n,m,(t)\nDal,12,30\nSven,13,31
Ship | Length | Weight
 | m | (t)
Ship: Dal | Length / m: 12 | Weight (t): 30
Ship: Sven | Length / m: 13 | Weight (t): 31
## years as names
,2023,2024\nBorg,6,7\nDal,8,9
 | 2023 | 2024
Borg | 2023: 6 | 2024: 7
Dal | 2023: 8 | 2024: 9
## stacked tables
Ship,Tons\nDal,20\nSven,30\n,\nCaptain,Age\nRolf,40
Ship | Tons
Ship: Dal | Tons: 20
Ship: Sven | Tons: 30

Captain | Age
Captain: Rolf | Age: 40
## figures with units
Ship,Length\nDal,12 m\nSven,9.5m\nRolf,10 m
Ship | Length
Ship: Dal | Length: 12 m
Ship: Sven | Length: 9.5m
Ship: Rolf | Length: 10 m
## tables side by side
Ship,Tons,,Captain,Age\nDal,20,,Rolf,40\nSven,30,,Eva,41\n,,,Ann,50
Ship | Tons
Ship: Dal | Tons: 20
Ship: Sven | Tons: 30

Captain | Age
Captain: Rolf | Age: 40
Captain: Eva | Age: 41
Captain: Ann | Age: 50
## blank rows within a table
Ship,Tons\n,\nDal,20\nSven,30\n,\nRolf,n/a\nEva,9
Ship | Tons
Ship: Dal | Tons: 20
Ship: Sven | Tons: 30
Ship: Rolf | Tons: n/a
Ship: Eva | Tons: 9
## a blank row within a table of words
Ship,Home,Flag\nDal,Borg,red\nSven,Riga,blue\n,,\nOle,Borg,red\nEva,Dal,green
Ship | Home | Flag
Ship: Dal | Home: Borg | Flag: red
Ship: Sven | Home: Riga | Flag: blue
Ship: Ole | Home: Borg | Flag: red
Ship: Eva | Home: Dal | Flag: green
## words among figures
Ship,Tons\nDal,unknown\nSven,20\nAsk,25\nEva,Repaired\nBo,30\nIda,n/a\nUna,35
Ship | Tons
Ship: Dal | Tons: unknown
Ship: Sven | Tons: 20
Ship: Ask | Tons: 25
Ship: Eva | Tons: Repaired
Ship: Bo | Tons: 30
Ship: Ida | Tons: n/a
Ship: Una | Tons: 35
## labels below a title
The ship,\nName,Dal\nHome,Borg
The ship
Name: Dal
Home: Borg
## labels with colons
Ship:,Dal\nTons:,20\nCrew:,3
Ship: Dal
Tons: 20
Crew: 3
## no header
Dal,20,3\nSven,30,4
Dal | 20 | 3
Sven | 30 | 4
## names in the first column
Ship,Dal,Sven\nTons,20,30\nHome,Borg,Riga
Ship | Dal | Sven
Ship: Tons | Dal: 20 | Sven: 30
Ship: Home | Dal: Borg | Sven: Riga
## equal and empty names
Item,Value,Value,,Stock\nRope,1,2,3,4\nTar,5,6,7,8
Item | Value | Value |  | Stock
Item: Rope | Value: 1 | Value: 2 | 3 | Stock: 4
Item: Tar | Value: 5 | Value: 6 | 7 | Stock: 8
## rows of other lengths
Item,Price,Stock\nRope,1,2\nTar,3\nOil,3,4,extra\nPitch
Item | Price | Stock
Item: Rope | Price: 1 | Stock: 2
Item: Tar | Price: 3
Item: Oil | Price: 3 | Stock: 4 | extra
Item: Pitch
## a header alone
Item,Price
Item | Price
## comments
# made by hand\n# on Monday,by Ann\nItem,Price,Stock\nRope,1,2\nTar,3,4\n# end
# made by hand
# on Monday | by Ann
Item | Price | Stock
Item: Rope | Price: 1 | Stock: 2
Item: Tar | Price: 3 | Stock: 4
Item: # end
## names in a comment
# x,y,z\n1,2,3\n4,5,6
# x | y | z
x: 1 | y: 2 | z: 3
x: 4 | y: 5 | z: 6
""")


@pytest.mark.parametrize(("name", "suffix"), [*product(FILES, ALL)])
def test_the_tables_of_a_file_have_their_own_names(name: str, suffix: str) -> None:
    content, expected = FILES[name]
    assert shown(read(ALL[suffix](grid(content)), f"a{suffix}")) == expected


SPANS: dict[str, tuple[tuple[int, int, int, int], ...]] = {
    "rows": ((1, 0, 3, 0),),
    "header of two rows": ((0, 0, 1, 0), (0, 1, 0, 2), (0, 3, 0, 4)),
    "header of one row": ((0, 1, 0, 2),),
    "title and sections": ((0, 0, 0, 2), (2, 0, 2, 2), (4, 0, 4, 2)),
    "columns below merged names": ((0, 0, 0, 1), (1, 0, 1, 1), (2, 0, 2, 1)),
    "columns": ((1, 1, 1, 2),),
}
MERGED = cases(r"""
## rows
Region,Town,Ships\nNorth,Dal,5\n,Borg,6\n,Ask,7\nSouth,Riga,8
Region | Town | Ships
Region: North | Town: Dal | Ships: 5
Region: North | Town: Borg | Ships: 6
Region: North | Town: Ask | Ships: 7
Region: South | Town: Riga | Ships: 8
## header of two rows
Town,2023,,2024,\n,Ships,Crew,Ships,Crew\nBorg,6,60,7,70
Town | 2023 |  | 2024
 | Ships | Crew | Ships | Crew
Town: Borg | 2023 / Ships: 6 | 2023 / Crew: 60 | 2024 / Ships: 7 | 2024 / Crew: 70
## header of one row
Name,Contact,,Town\nRolf,rolf@b,+47 a,Borg\nEva,eva@d,+47 b,Dal
Name | Contact |  | Town
Name: Rolf | Contact: rolf@b | Contact: +47 a | Town: Borg
Name: Eva | Contact: eva@d | Contact: +47 b | Town: Dal
## title and sections
Fleet,,\nShip,Tons,Crew\nNorth,,\nDal,20,3\nSouth,,\nSven,30,4
Fleet
Ship | Tons | Crew
North
Ship: Dal | Tons: 20 | Crew: 3
South
Ship: Sven | Tons: 30 | Crew: 4
## columns below merged names
Name,,Age,Town\nRolf,,40,Borg\nEva,,41,Dal
Name |  | Age | Town
Name: Rolf | Age: 40 | Town: Borg
Name: Eva | Age: 41 | Town: Dal
## columns
Ship,Tons,Crew\nDal,closed,\nSven,30,4
Ship | Tons | Crew
Ship: Dal | Tons: closed | Crew: closed
Ship: Sven | Tons: 30 | Crew: 4
""")


@pytest.mark.parametrize(("name", "suffix"), [*product(MERGED, SHEETS)])
def test_merged_cells_are_in_every_row_and_column_that_they_cover(name: str, suffix: str) -> None:
    content, expected = MERGED[name]
    assert shown(read(SHEETS[suffix](grid(content, *SPANS[name])), f"a{suffix}")) == expected


def test_long_texts_of_merged_cells_are_not_repeated() -> None:
    rows: list[list[Cell]] = [["Town", "Ships", "Remark"], ["Dal", 1, "x" * 300]]
    rows += [[f"T{n}", n] for n in range(9)]
    text = read(xlsx(Grid(rows, [(1, 2, 10, 2)])), "a.xlsx").text
    assert text.count("x" * 300) == 1


@pytest.mark.parametrize("suffix", ALL)
def test_cells_of_every_table_have_their_places(suffix: str) -> None:
    content = ",,,,,\n,Ship,Tons,,Captain,Age\n,Dal,20,,Rolf,40\n,,,,,\n,Town,Ships,,,\n,Borg,6,,,"
    document = read(ALL[suffix](grid(content)), f"a{suffix}")
    is_text = suffix in (".csv", ".tsv")
    for text, place in {"Tons: 20": "C3", "Age: 40": "F3", "Town: Borg": "B6"}.items():
        at = document.text.index(text)
        name = f"row {place[1:]}" if is_text else f"S!{place}"
        assert place_of_span(document, Span(at, at + len(text))) == name


def test_merged_and_hidden_cells_keep_their_places() -> None:
    cells = grid("Region,Code,Town,Ships\nNorth,1,Dal,5\n,2,Old,9\n,3,Borg,6", (1, 0, 3, 0))
    document = read(xlsx(Grid(cells.rows, cells.merged, [2], [1])), "a.xlsx")
    row = document.text.splitlines()[2]
    assert row == "Region: North\tTown: Borg\tShips: 6"
    at = document.text.index(row)
    assert place_of_span(document, Span(at, at + 13)) == "S!A4"
    assert place_of_span(document, Span(at, at + len(row))) == "S!A4 to S!D4"


def test_tables_of_a_sheet_share_no_chunk() -> None:
    content, _ = FILES["stacked tables"]
    for suffix in (".csv", ".xlsx"):
        document = read(ALL[suffix](grid(content)), f"a{suffix}")
        chunks = [document.text[s.start : s.end] for s in Rows(size=99).chunk(document)]
        assert [chunk.split("\t")[0] for chunk in chunks] == ["Ship", "Captain"]


def test_a_named_header_is_the_only_one() -> None:
    content = "Ship,Tons\nDal,20\n\nCaptain,Age\nRolf,40\n"
    document = load_bytes(content.encode(), Path("a.csv"), Csv(header="first"))
    rows = ["Ship: Captain | Tons: Age", "Ship: Rolf | Tons: 40"]
    assert shown(document).splitlines()[2:] == rows
    document = load_bytes(content.encode(), Path("a.csv"), Csv(header="none"))
    assert shown(document).splitlines()[2:] == ["Captain | Age", "Rolf | 40"]


@pytest.mark.parametrize("suffix", [".xlsx", ".ods"])
def test_errors_of_cells_are_read(suffix: str) -> None:
    cells = grid("Ship,Tons,Crew\nDal,#N/A,3\nSven,20,#DIV/0!\nRolf,30,#REF!")
    assert shown(read(SHEETS[suffix](cells), f"a{suffix}")).splitlines()[1:] == [
        "Ship: Dal | Tons: #N/A | Crew: 3",
        "Ship: Sven | Tons: 20 | Crew: #DIV/0!",
        "Ship: Rolf | Tons: 30 | Crew: #REF!",
    ]


@pytest.mark.parametrize("suffix", [".xlsx", ".ods"])
def test_hidden_rows_and_columns_are_losses(suffix: str) -> None:
    cells = grid("Ship,Pay,Tons\nDal,7,20\nSven,8,30\nRolf,9,40")
    data = SHEETS[suffix](Grid(cells.rows, (), [2], [1]))
    document = read(data, f"a{suffix}")
    lines = ["Ship | Tons", "Ship: Dal | Tons: 20", "Ship: Rolf | Tons: 40"]
    assert shown(document).splitlines() == lines
    assert lost(document) == {"hidden row": ("S", 7, 1), "hidden column": ("S", 5, 1)}
    document = load_bytes(data, Path(f"a{suffix}"), Sheets(hidden=True))
    assert shown(document).splitlines()[2] == "Ship: Sven | Pay: 8 | Tons: 30"
    assert not document.losses


@pytest.mark.parametrize("state", ["hidden", "veryHidden"])
def test_hidden_sheets_are_losses(state: str) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Ship", 7])
    sheet = book.create_sheet("Old")
    sheet.append(["Wreck", 8])
    sheet.sheet_state = state
    document = read(saved(book), "a.xlsx")
    assert document.text == "Ship\t7"
    assert lost(document) == {"hidden sheet": ("Old", 7, 1)}
    document = load_bytes(saved(book), Path("a.xlsx"), Sheets(hidden=True))
    assert document.text == "Ship\t7\n\nWreck\t8"


@pytest.mark.parametrize("suffix", [".xlsx", ".ods"])
def test_numbers_have_the_unit_of_their_format(suffix: str) -> None:
    formats = {(1, 1): "0%", (1, 2): '0 "EUR"', (2, 1): "0%", (2, 2): '0 "EUR"'}
    head: list[Cell] = ["Ship", "Share", "Price"]
    rows: list[list[Cell]] = [head, ["Dal", 0.155, 1234.5], ["Sven", 1.0, 7.0]]
    document = read(SHEETS[suffix](Grid(rows, formats=formats)), f"a{suffix}")
    assert shown(document).splitlines()[1:] == [
        "Ship: Dal | Share: 15.5% | Price: 1234.5 EUR",
        "Ship: Sven | Share: 100% | Price: 7 EUR",
    ]


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (1234.5, '#,##0.00 "kr"', "1234.5 kr"),
        (-5.0, '"$"#,##0.000_);[Red]("$"#,##0.000)', "-$5"),
        (12.5, "#,##0.00\\ [$€-407]", "12.5 €"),
        (7.0, "00000", "00007"),
        (0.000001, "0.0%", "0.0001%"),
        (1500000.0, '0.0,,"M"', "1500000"),
        (2.0, '[=1]0" ship";0" ships"', "2"),
        (0.1 + 0.2, "General", "0.3"),
        (1e20, "General", "100000000000000000000"),
        (-0.0, "General", "0"),
        (True, "0%", "TRUE"),
        ("007", "@", "007"),
        (datetime.date(2023, 5, 1), "d. mmm yy", "2023-05-01"),
        (datetime.datetime(2023, 5, 1, 14, 30), "h:mm", "2023-05-01 14:30:00"),
        (datetime.time(14, 30), "h:mm", "14:30:00"),
        (datetime.timedelta(hours=30, minutes=5), "[h]:mm", "30:05:00"),
    ],
)  # fmt: skip
def test_values_are_read_as_they_are(value: object, code: str, text: str) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Name", "Value", "Mark"])
    book.active.append(["x", value, "y"])
    book.active["B2"].number_format = code
    assert shown(read(saved(book), "a.xlsx")).splitlines()[1].split(" | ")[1].endswith(text)


def changed(data: bytes, part: str, change: tuple[bytes, bytes]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert change[0] in parts[part]
    return zipped({**parts, part: parts[part].replace(*change)})


def test_corrupt_and_locked_spreadsheets_of_libreoffice_are_refused() -> None:
    data = changed(SHEETS[".ods"](grid("a,b")), "content.xml", (b"</table:table-row>", b"</row>"))
    with pytest.raises(UserError, match=r"a\.ods: is corrupt \(mismatched tag: line 1, column"):
        read(data, "a.ods")
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    files: dict[str, str | bytes] = {"mimetype": kind, "content.xml": b"\x8f"}
    files["META-INF/manifest.xml"] = "<manifest:encryption-data/>"
    with pytest.raises(UserError, match=r"a\.ods: is locked by a password"):
        read(zipped(files), "a.ods")


def test_a_locked_xls_file_is_refused() -> None:
    data = re.sub(rb"(?s)(\x09\x08\x10\x00.{16})..", b"\\1\x2f\x00", xls(grid("a,b")), count=1)
    with pytest.raises(UserError, match=r"a\.xls: is locked by a password"):
        read(data, "a.xls")


@pytest.mark.parametrize("rows", [(0, 2**31), (1, 0)])
def test_an_xls_file_that_would_fill_the_memory_is_refused(rows: tuple[int, int]) -> None:
    data = xls(grid("Ship,Tons\nDal,7"))
    size = pack("<2H2I2H", 0x200, 14, 0, 2, 0, 2)
    assert data.count(size) == 1
    with pytest.raises(UserError, match=r"a\.xls: has a sheet of .* cells, too many"):
        read(data.replace(size, pack("<2H2I2H", 0x200, 14, *rows, 0, 2)), "a.xls")


def test_an_xls_file_reports_what_is_not_read() -> None:
    document = read(xls(Grid([["Ship", "Tons"], ["Dal", "#N/A"], ["Sven", 20]], (), [2])), "a.xls")
    assert shown(document).splitlines()[1:] == ["Ship: Dal", "Ship: Sven | Tons: 20"]
    assert [*lost(document)] == ["marks of cells"]


CELLS = st.lists(
    st.lists(st.sampled_from(["", "Ship", "Tons", "20", "2023", "n/a", "# c", "Dal", "m"])),
    min_size=1,
)


@given(rows=CELLS, merged=st.tuples(*[st.integers(0, 4)] * 4))
def test_every_cell_is_in_the_text_at_its_place(
    rows: list[list[str]], merged: tuple[int, int, int, int]
) -> None:
    top, first, height, width = merged
    span = (top, first, top + height, first + width)
    table = written(rows, "auto", str, lambda row, column: f"{row} {column}", merged=[span])
    texts = {place.name: table.text[place.start : place.end] for place in table.places}
    assert len(texts) == len(table.places)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            assert cell in texts.get(f"{i} {j}", "")
    ends = [0, *(place.end for place in table.places)]
    assert all(end <= place.start for end, place in zip(ends, table.places, strict=False))


def test_sheets_of_other_programs_have_their_marks() -> None:
    """Their elements have a prefix."""
    data = xlsx(Grid(grid("Ship,Tons\nDal,#N/A\nSven,8\nRolf,9").rows, hidden_rows=[2]))
    part = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sheet = archive.read(part)
    prefixed = re.sub(rb"<(/?)(?=\w)", rb"<\1x:", sheet).replace(b"xmlns=", b"xmlns:x=")
    document = read(changed(data, part, (sheet, prefixed)), "a.xlsx")
    assert shown(document).splitlines()[1:] == ["Ship: Dal | Tons: #N/A", "Ship: Rolf | Tons: 9"]


def test_formulas_that_were_never_computed_are_losses() -> None:
    rows = [["Item", "Sum"], ["Rope", "=2*10"], ["Tar", "=3*10"]]
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer)  # writes zeros
    sheet = book.add_worksheet("S")
    for number, row in enumerate(rows):
        sheet.write_row(number, 0, row)
    book.close()
    document = read(buffer.getvalue(), "a.xlsx")
    assert lost(document) == {"formula without a value": ("S", 0, 2)}
    assert "0" not in document.text


def test_texts_of_cells_are_read_and_comments_are_losses() -> None:
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer)
    sheet = book.add_worksheet("S")
    sheet.write_row(0, 0, ["Ship", "Home", "Tons"])
    sheet.write_rich_string(1, 0, "Old ", book.add_format({"bold": True}), "Dal")
    sheet.write_url(1, 1, "https://example.org", None, "Port of Borg")
    sheet.write(1, 2, 20)
    sheet.write_comment(1, 2, "weighed twice")
    book.add_chartsheet("Chart")
    book.close()
    document = read(buffer.getvalue(), "a.xlsx")
    assert shown(document).splitlines()[1] == "Ship: Old Dal | Home: Port of Borg | Tons: 20"
    assert lost(document) == {"comment": ("", 13, 1), "sheet without cells": ("Chart", 0, 1)}


@pytest.mark.parametrize(
    "change",
    [(b"</sheetData>", b""), (b"<v>2</v>", b"<v>x</v>"), (b'r="A1"', b'r="1A"')],
    ids=["an open element", "a number", "a name"],
)
def test_a_corrupt_sheet_is_a_loss(change: tuple[bytes, bytes]) -> None:
    book = openpyxl.Workbook()
    for name in ("First", "Second", "Third"):
        sheet = book.create_sheet(name)
        sheet.append([f"of {name}", 2])
    book.remove(book.active)
    data = changed(saved(book), "xl/worksheets/sheet2.xml", change)
    document = read(data, "a.xlsx")
    assert [line.split("\t")[0] for line in document.text.split("\n\n")] == ["of First", "of Third"]
    assert [(loss.what, loss.place) for loss in document.losses] == [("corrupt sheet", "Second")]
    data = changed(xlsx(grid("a,b")), "xl/worksheets/sheet1.xml", (b"</sheetData>", b""))
    with pytest.raises(UserError, match=r"the file has no text \(corrupt sheet: cannot be read"):
        read(data, "a.xlsx")


CSV = {
    "a line for Excel": ("sep=;\r\nItem;Price\r\nRope;1,5\r\n", "Item: Rope | Price: 1,5", 3),
    "a line with a tab": ("sep=\t\nItem\tPrice\nRope; old\t15\n", "Item: Rope; old | Price: 15", 3),
    "a mark": ("\ufeffItem;Price\nRope;1,5\n", "Item: Rope | Price: 1,5", 2),
    "bars": ("Item|Price\nRope, long|15\n", "Item: Rope, long | Price: 15", 2),
    "decimal commas": ("Item;A;B\nRope;1,5;2,5\nTar;1,5\nOil;1,0;2,0;x\n", "Item: Tar | A: 1,5", 3),
    "decimal commas only": ("Rope;22,50\nTar;31,00\nOil;2,10\n", "Tar: 31,00", 2),
    "line breaks": ('Item,Note,Price\nRope,"a\nb, c",1\nTar,d,2\n', "Item: Rope | Note: a b, c", 2),
    "doubled marks": ('Item,Note,Price\nRope,"a ""b"" c",1\n', 'Item: Rope | Note: a "b" c', 2),
    "inches": ('Item,Size,Price\nPipe,5" wide,3\nRope,"2",4\n', 'Item: Pipe | Size: 5" wide', 2),
    "an open mark": ('Item,Size,Price\nPipe,"5 wide,3\nRope,2,4\n', "Item: Rope | Size: 2", 3),
    "an open mark at first": ('Item,Size,Price\n"Pipe,5,3\nRope,2,4\n', 'Item: "Pipe | Size: 5', 2),
    "digits": (
        "Item,Code,Size\nRope,007,0.30000000000000004\nTar,1E+20,12345678901234567\n",
        "Item: Tar | Code: 1E+20 | Size: 12345678901234567", 3,
    ),
    "an index": (",Price\nRope,1\nTar,2\n", "Tar | Price: 2", 3),
}  # fmt: skip


@pytest.mark.parametrize("name", CSV)
def test_texts_with_delimiters_are_read_row_by_row(name: str) -> None:
    content, line, number = CSV[name]
    document = read(content, "a.csv")
    assert line in shown(document)
    start = document.text.index(line.replace(" | ", "\t"))
    assert place_of_span(document, Span(start, start + 2)) == f"row {number}"


def test_a_hundred_thousand_rows_are_all_read() -> None:
    rows = "".join(f"Ship {n},{n}\n" for n in range(100_000))
    document = read("Ship,Tons\n" + rows, "a.csv")
    assert len(document.places) == 100_001
    assert document.text.endswith("Ship: Ship 99999\tTons: 99999")
