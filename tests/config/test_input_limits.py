"""Tests that oversized configs are refused before they take time or memory."""

from pathlib import Path
from random import Random

import pytest

from leporello.config import load_config
from leporello.core.errors import ConfigError
from tests.attack.yaml import case

_SWEPT = ", ".join(map(str, range(1, 1001)))
_STAGES = "retriever: All, reader: Lead"
_BOMB = "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 12))
_CHAIN = "".join(f"  p{n}: {{extends: p{n - 1}}}\n" for n in range(1, 52))
_WIDE = "".join(f"c{n}: {{}}, " for n in range(200))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f"a0: &a0 {{x: 1}}\n{_BOMB}", ":6: with its aliases has more than 100,000 mappings"),
        (
            "pipelines:\n  p:\n"
            f"    chunker: {{class: FixedTokens, size: [{_SWEPT}], overlap: [{_SWEPT}]}}\n"
            "    reader: Lead\n",
            ":3: p.chunker: sweeps make 1,000,000 combinations here, and a pipeline may have at",
        ),
        (
            f"pipelines:\n  p:\n    chunker: {{class: FixedTokens, size: [{_SWEPT}]}}\n"
            f"    retriever: {{class: First, k: [{_SWEPT}]}}\n    reader: Lead\n",
            ":2: p: sweeps make 1,000,000 combinations here",
        ),
        (
            "pipelines:\n  p: {reader: Lead, retriever: {class: Fusion, retrievers: ["
            + "{sweep: [BM25, TfIdf]}, " * 40
            + "]}}\n",
            ":2: p.retriever.retrievers: sweeps make 1,099,511,627,776 combinations here",
        ),
        (f'pipelines:\n  p: {{chunker: "a\\0b", {_STAGES}}}\n',
         ":2: p.chunker.class: 'a\\x00b' is"),
        ('pipelines: {p: {extends: default, model: "./a\\0"}}', ":1: p: './a\\x00' is not a valid"),
        ("pipelines: {p: {extends: default, model: ~no/x}}", ":1: p: '~no/x' is not a valid path:"),
        ("{collections: {x: [~nosuch/x]}, tasks: {t: {path: 1}}}", ":1: tasks.t: needs `class"),
        (f"pipelines: {'x' * 3_000_000}", ": is too large: the limits are 2 MiB"),
        ("\n" * 200_000, ": is too large: the limits are 2 MiB, 100,000 lines"),
        (f"pipelines:\n  p0: {{{_STAGES}}}\n{_CHAIN}", ":3: p1.extends: at most 50 pipelines may"),
        (f"suites:\n  s: {{by: {{length: {{{_WIDE}}}}}, columns: {{{_WIDE}}}}}\n",
         ":2: suites.s: has 40,000 columns; at most 10,000 are allowed"),
    ],
    ids=lambda text: str(text)[:30],
)  # fmt: skip
def test_an_oversized_config_is_a_fault(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config([path])
    message = str(caught.value)
    assert f"mine.yaml{fault}" in message
    assert max(map(len, message.splitlines())) < 1_200


def test_a_changed_config_loads_or_is_refused(tmp_path: Path) -> None:
    """Changes are to bytes, lines and tokens; `make attack FAMILY=yaml` tries thousands."""
    problems = [case(Random(number), number).run(tmp_path) for number in range(8)]
    assert [*filter(None, problems)] == []
