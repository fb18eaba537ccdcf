"""Tests of reading and writing YAML, with and without libyaml."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from leporello.core.errors import ConfigError
from leporello.core.yaml import tree
from leporello.core.yaml.scalars import as_yaml, write_yaml
from leporello.core.yaml.tree import parse, read_tree

_TEXTS = (
    *("no", "No", "yes", "on", "off", "y", "nULL", "1:30", "1:30:45", "2001-01-01", "<<", "="),
    *("1e", "e5", ".5e5", "0O17", "0o8", "0b2", "0xG", "1.2.3", "-_", "_1", "-.nan", "nan", "inf"),
    *("1e1_0", "a#b", "http://x:80/y", "¹", "1 000"),
)  # fmt: skip
_NUMBERS = {
    "1e-5": 1e-5, "1E5": 1e5, "+1.5e+3": 1500.0, "5.": 5.0, ".5": 0.5, "-.5e-1": -0.05,
    "0o17": 15, "017": 17, "0x1F": 31, "-0b101": -5, "1_000": 1000, "+5": 5, "-0.0": -0.0,
    ".inf": math.inf, "-.INF": -math.inf,
}  # fmt: skip
_WORDS = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    "null": None, "Null": None, "NULL": None, "~": None, "": None,
}  # fmt: skip
_DEEP = "is nested too deeply: at most 100 mappings and lists within each other"
_TAG = "is not allowed; quote a value that is text"
_START = "that cannot start any token while scanning for the next token"
_SYNTAX = "not valid YAML: "


@pytest.fixture(params=["CSafeLoader", "SafeLoader"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with the parser of libyaml, and with PyYAML's own."""
    monkeypatch.setattr(tree, "_PARSER", getattr(yaml, request.param))


def _faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, Path("a.yaml"))
    return [str(fault).removeprefix("a.yaml:") for fault in caught.value.faults]


@pytest.mark.parametrize("text", _TEXTS)
def test_a_plain_scalar_that_yaml_1_2_has_no_type_for_is_text(text: str) -> None:
    """In YAML 1.1 some are booleans, dates, or numbers to the base 60."""
    assert parse(f"a: {text}\nb: [{text}]", None).plain() == {"a": text, "b": [text]}


@pytest.mark.parametrize(("text", "value"), [*_NUMBERS.items(), *_WORDS.items()])
def test_a_plain_scalar_has_the_type_of_yaml_1_2(text: str, value: object) -> None:
    read: Any = parse(f"a: {text}\nb: '{text}'\n? {text}\n: 1", None).plain()
    assert (repr(read["a"]), read["b"], read[text]) == (repr(value), text, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("# nothing\n", {}),
        ("a: &x {b: 1}\nc: *x\nd: [*x]", {"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}]}),
        ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
        ("&x a: 1\nb: {*x : 2}", {"a": 1, "b": {"a": 2}}),
        ("a: &x {b: 1}\nc: {<<: *x}", {"a": {"b": 1}, "c": {"<<": {"b": 1}}}),
        ("%YAML 1.2\n---\na: no\n...\n", {"a": "no"}),
        ('a: "\\u00e9"\nb: >-\n  x\n  y\nc: |\n  x\n\n  y', {"a": "é", "b": "x y", "c": "x\n\ny"}),
        ("\ufeffa: 1\r\nb: 2", {"a": 1, "b": 2}),
    ],
)  # fmt: skip
def test_yaml_that_is_allowed(text: str, value: dict[str, Any]) -> None:
    assert parse(text, None).plain() == value


def test_a_hundred_levels_are_allowed() -> None:
    """The text in the innermost list is on level 100."""
    assert "x" in str(parse(f"{'[' * 99}x{']' * 99}", None).plain())
    assert _faults(f"{'[' * 100}x{']' * 100}") == [f"1: {_DEEP}"]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a: 1\nb: 2\na: 3\n'b': 4", ["3: key 'a' is given twice (first in line 1)",
                                      "4: key 'b' is given twice (first in line 2)"]),
        ("x:\n  ~: 1\n  '~': 2", ["3: key '~' is given twice (first in line 2)"]),
        ("a: {b: 1,\n    b: 2}", ["2: key 'b' is given twice (first in line 1)"]),
        ("1: {}\n[a]: {}\n{b: c}: 1", ["2: a key must be a plain name",
                                       "3: a key must be a plain name"]),
        ("a:\n  b: *x", ["2: there is no anchor &x; quote a text that begins with *"]),
        ("a: &x\n  - b: *x", ["2: an alias may not point to a value that contains it"]),
        ("a: !!python/object:os.system {}\nb: !x 1\nc: !!int 5", [
            f"1: the tag 'tag:yaml.org,2002:python/object:os.system' {_TAG}",
            f"2: the tag '!x' {_TAG}",
            f"3: the tag 'tag:yaml.org,2002:int' {_TAG}",
        ]),
        (f"a: {'1' * 401}\nb: '{'1' * 401}'",
         ["1: a number of 401 letters is too long: at most 400"]),
        ("a: 1e999", ["1: the number 1e999 of 5 letters is too large: at most 1.8e308"]),
        ("a: 1\n---\nb: 2", [f"2: {_SYNTAX}a second document begins; a config has only one"]),
        ("%YAML 1.1\n---\na: no", ["1: a config is YAML 1.2, not 1.1; remove the line %YAML"]),
        ("a: b\nc: \0", [f"2: {_SYNTAX}special characters are not allowed: '\\x00'"]),
        ("a: \ud800", [f"1: {_SYNTAX}special characters are not allowed: '\\ud800'"]),
        ("a:\n\tb: 1", [f"2: {_SYNTAX}found character '\\t' {_START}"]),
        ("a: @x", [f"1: {_SYNTAX}found character '@' {_START}"]),
        ("a: 'x\nb: 1\n", [f"2: {_SYNTAX}found unexpected end of stream"
                           " while scanning a quoted scalar that begins in line 1"]),
        ("[" * 49_000, [f"1: {_DEEP}"]),
        ("{a: " * 20_000, [f"1: {_DEEP}"]),
        ("- " * 49_000, [f"1: {_DEEP}"]),
        ("? " * 49_000, [f"1: {_DEEP}"]),
        (f"a: {'[' * 49_000}{']' * 49_000}", [f"1: {_DEEP}"]),
        ("a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 120)),
         [f"99: {_DEEP}"]),
        ("".join(f"%TAG !a{n}! x\n" for n in range(101)) + "--- a", [
            " is too large: the limits are 2 MiB, 100,000 lines, commas and brackets,"
            " and 100 %TAG directives"
        ]),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_a_fault_of_yaml_has_its_line_and_reason(text: str, faults: list[str]) -> None:
    assert _faults(text) == faults


@pytest.mark.parametrize(
    ("text", "line"),
    [
        *(("a: [", 1), ("a: [\nb: 1", 2), ("a: {x: 1 y: 2}", 1), ("a: b: c", 1), ("a\nb: 1", 2)),
        *(("a: 1\n b: 2", 2), ("a:\n    b: 1\n  c: 2", 3), ("a: 1\nb", 2), ("a: 1\nb\n\n", 3)),
        *(("a: *", 1), ("%FOO: 1", 1), ('a: "\\q"', 1), ("- a\nb: 1", 2), ("a: [1]]", 1)),
    ],
)  # fmt: skip
def test_a_syntax_error_has_its_line(text: str, line: int) -> None:
    [fault] = _faults(text)
    assert fault.startswith(f"{line}: {_SYNTAX}")


def test_an_escape_beyond_unicode_is_a_fault() -> None:
    """PyYAML's parser raises a different error."""
    [fault] = _faults('a: "\\U00110000"')
    assert _SYNTAX in fault


def test_values_are_written_so_that_they_are_read_as_they_were(tmp_path: Path) -> None:
    odd = ("9" * 500, "a\nb", " a ", "a: b", "- a", "é\U0001f600", "\u2028", "x " * 90)
    texts = [*_TEXTS, *_NUMBERS, *_WORDS, *odd]
    values: list[Any] = [*texts, 1e-5, 1e20, 1.0, -0.0, math.inf, 10**30, True, None, [], {}, [[1]]]
    pairs = [{text: [text]} for text in texts]
    value = {"z": values, "a": {text: text for text in texts}, "f": pairs}
    write_yaml(tmp_path / "a.yaml", value)
    read = read_tree(tmp_path / "a.yaml").plain()
    assert read == value
    again: Any = parse(as_yaml(value), None).plain()
    assert repr(again) == repr(value)


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=300), st.text()))
def test_written_yaml_is_read_unchanged(mapping: dict[str, str]) -> None:
    """MajorityAnswer writes long keys."""
    assert parse(as_yaml({"answers": mapping}), None).plain() == {"answers": mapping}
