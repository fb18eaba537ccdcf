"""Tests of faults in files and names, with their lines and suggested names, and of size limits."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from leporello.config import Config, load_config
from leporello.config.suite_files import suite_named
from leporello.core.errors import ConfigError, UserError
from tests.attack.yaml import case

Use = Callable[[Config], object]
PAPER = "papers/shuffle_test.yaml"
GPT2 = "did you mean 'shuffle-gpt2'"
WSJ = "did you mean 'shuffle_test/wsj'"
REPLACES = "; your 'shuffle-gpt2' replaces the built-in pipeline: give it another name"
NOT_BOOL = "m.normalised: must be true or false, got"
NOT_INT = "m.reader.words: must be a valid integer, got"


def _errors(
    folder: Path,
    texts: tuple[str | bytes, ...],
    use: Use | None = None,
    kind: type[UserError] = UserError,
) -> list[str]:
    files = [folder / f"{letter}.yaml" for letter, _ in zip("abcdef", texts, strict=False)]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(kind) as caught:
        use(load_config(files)) if use else load_config(files)
    built_in = f"{Path(__file__).parents[2]}{os.sep}"
    lines = str(caught.value).replace(f"{folder}{os.sep}", "").replace(built_in, "")
    return lines.splitlines()


def _check(lines: list[str], expected: tuple[str, ...]) -> None:
    assert len(lines) == len(expected), "\n".join(lines)
    for line, beginning in zip(lines, expected, strict=True):
        assert line.startswith(beginning), f"{line}\n{beginning}"


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda c: c.select(["shufle-gpt2"]), (f"there is no pipeline 'shufle-gpt2'; {GPT2}",)),
        (
            lambda c: c.select(["shufle-gpt2", "lead", "laed"]),
            (f"there is no pipeline 'shufle-gpt2'; {GPT2}", "there is no pipeline 'laed'; did you"),
        ),
        (lambda c: c.select(["shufle-*"]), ("there is no pipeline 'shufle-*'; did you mean",)),
        (lambda c: c.select(["shuffle-gpt2@k=3"]), ("there is no pipeline 'shuffle-gpt2@k=3'",)),
        (
            lambda c: c.tasks_named(["shuffle_test/wjs", "scrolls/qsper"]),
            (f"there is no task 'shuffle_test/wjs'; {WSJ}",
             "there is no task 'scrolls/qsper'; did you mean 'scrolls/qasper'"),
        ),
        (
            lambda c: c.tasks_named(["shuffle_test/wsj@splt=test"]),
            ("task shuffle_test/wsj@splt=test: must be PARAMETER=VALUE, and ShuffleTest has no"
             " parameter 'splt'; did you mean 'split'",),
        ),
        (
            lambda c: c.tasks_named(["shuffle_test/wsj@split"]),
            ("task shuffle_test/wsj@split: must be PARAMETER=VALUE",),
        ),
        (
            lambda c: c.tasks_named(["shuffle_test/wsj@seed=x"]),
            ("task shuffle_test/wsj@seed=x: seed must be a valid integer, got 'x'",),
        ),
        (lambda _: suite_named("shufle_test"), ("there is no suite 'shufle_test'; did you mean",)),
    ],
)  # fmt: skip
def test_a_misspelt_name_finds_the_one_in_a_file_that_was_not_opened(
    tmp_path: Path, use: Use, expected: tuple[str, ...]
) -> None:
    _check(_errors(tmp_path, (), use), expected)


COLUMN = "    columns:\n      c: {task: shuffle_test/wsj, score: accuracy}\n"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # Names in files that are not opened.
        (("pipelines:\n  m:\n    extends: shufle-gpt2\n",),
         (f"a.yaml:3: m.extends: there is no pipeline 'shufle-gpt2'; {GPT2}",)),
        (("pipelines: {m: {extends: shuffle-gpt2, tasks: [sample, shuffle_test/wjs]}}\n",),
         (f"a.yaml:1: m.tasks: there is no task 'shuffle_test/wjs'; {WSJ}",)),
        (("default: {pipeline: shufle-gpt2,\n  task: shuffle_test/wjs}\n",),
         (f"a.yaml:1: default.pipeline: there is no pipeline 'shufle-gpt2'; {GPT2}",
          f"a.yaml:1: default.task: there is no task 'shuffle_test/wjs'; {WSJ}")),
        # Suites.
        ((f"suites:\n  s:\n{COLUMN}    rows:\n      r: {{pipelines: shufle-gpt2}}\n",),
         (f"a.yaml:6: suites.s.rows.r.pipelines: there is no pipeline 'shufle-gpt2'; {GPT2}",)),
        (("pipelines:\n  mine: {extends: lead, train: {pipeline: led}}\n",),
         ("a.yaml:2: mine.train.pipeline: there is no pipeline 'led'; did you mean 'lead'",)),
        (("suites: {zero_scrolls: {rows: {r: {pipelines: lead, settings: chta=true}}}}\n",),
         ("a.yaml:1: suites.zero_scrolls.rows.r.settings: task zero_scrolls/gov_report@chta",)),
        ((f"suites:\n  s:\n{COLUMN}    rows:\n      r: {{pipelines: 'shuffle-{{column}}'}}\n",),
         ("a.yaml:6: suites.s.rows.r.pipelines: there is no pipeline 'shuffle-c'; did you mean",)),
        (("suites:\n  s:\n    columns:\n      c: {task: shuffle_test/wjs, score: f1}\n",),
         (f"a.yaml:4: suites.s.columns.c: there is no task 'shuffle_test/wjs'; {WSJ}",)),
        (("suites:\n  scrols:\n    columns:\n      qasper: {score: f1}\n",),
         ("a.yaml:4: suites.scrols.columns.qasper: there is no task 'scrols/qasper'; did you mean"
          " 'scrolls/qasper'",)),
        ((f"suites:\n  s:\n{COLUMN}    rows:\n      r: {{pipelines: {{d: lead}}}}\n"
          "    groups: {results: {all: [c, d]}}\n    submission: {file: a.csv, tasks: [cc]}\n",),
         ("a.yaml:6: suites.s.rows.r.pipelines: there is no column 'd'; allowed: c",
          "a.yaml:7: suites.s.groups.results.all: there is no column 'd'; allowed: c",
          "a.yaml:8: suites.s.submission.tasks: there is no column 'cc'; did you mean 'c'")),
        (("suites:\n  shuffle_test:\n    rows:\n      mine: {pipelines: shufle-gpt2}\n",),
         ("a.yaml:4: suites.shuffle_test.rows.mine.pipelines: there is no pipeline 'shufle-",)),
        (("pipelines: {m: {extends: ask-smollm2, reader: {dtype: x, backend: y}}}\n",),
         ("a.yaml:1: m.reader.backend: there is no backend 'y'",
          "a.yaml:1: m.reader.dtype: 'x' is not allowed")),
        # Pipelines that extend a pipeline of another file, or of the same name.
        (("pipelines: {a: {extends: b}}\n", "pipelines:\n  b: {extends: a}\n"),
         ("a.yaml:1: a.extends: is circular: a -> b -> a",
          "b.yaml:2: b.extends: is circular: b -> a -> b")),
        (("pipelines: {a: {extends: b}}\n",
          "pipelines:\n  b: {extends: shuffle-gpt2, chunker: {size: 0}}\n"),
         ("b.yaml:2: a.chunker.size: must be greater than 0, got 0",
          "b.yaml:2: b.chunker.size: must be greater than 0, got 0")),
        (("pipelines: {m: {extends: m, reader: Lead}}\n",),
         ("a.yaml:1: m.extends: is circular: m -> m",)),
        (("pipelines: {shuffle-gpt2: {extends: shuffle-gpt2}}\n",),
         (f"a.yaml:1: shuffle-gpt2.extends: is circular: shuffle-gpt2 -> shuffle-gpt2"
          f"{REPLACES}",)),
        (("pipelines: {shuffle-gpt2: {extends: shuffle-gpt2-code}}\n",),
         (f"{PAPER}:24: shuffle-gpt2-code.extends: is circular: shuffle-gpt2-code ->"
          f" shuffle-gpt2 -> shuffle-gpt2-code{REPLACES}",
          f"a.yaml:1: shuffle-gpt2: shuffle-gpt2-code extends it{REPLACES}")),
        (("pipelines: {m: {extends: [lead]}, n: {extends: ~, reader: Lead}}\n",),
         ("a.yaml:1: m.extends: must be the name of one pipeline, got ['lead']",
          "a.yaml:1: n.extends: must be the name of one pipeline, got None")),
        # Values have the types of YAML 1.2.
        (("pipelines:\n  m: {reader: Lead, normalised: no}\n",), (f"a.yaml:2: {NOT_BOOL} 'no'",)),
        (("pipelines: {m: {reader: {class: Lead, words: 1:30}}}\n",),
         (f"a.yaml:1: {NOT_INT} '1:30'",)),
        (("pipelines: {m: {reader: Lead, abstain: .nan}, n: {reader: Lead, abstain: 1e5},\n"
          "  o: {reader: Lead, abstain: true}, p: {reader: Lead, abstain: [0.1, 0.2]}}\n",),
         ("a.yaml:1: m.abstain: must be one number from 0 to 1, got nan",
          "a.yaml:1: n.abstain: must be one number from 0 to 1, got 100000.0",
          "a.yaml:2: o.abstain: must be one number from 0 to 1, got True",
          "a.yaml:2: p.abstain: must be one number from 0 to 1, got [0.1, 0.2]")),
        (("pipelines:\n",), ("a.yaml:1: pipelines must be a mapping of names",)),
        (("pipelines:\n  m:\n  n: []\n",),
         ("a.yaml:2: m: must be a mapping, got None", "a.yaml:3: n: must be a mapping, got []")),
        (("pipelines:\n  m: {reader: Lead, tasks: 7, description: 3, tuned: 3, train: 4,\n"
          "      budget: [], placement: ~, readers: 5, abstain: no, model: [a]}\n",),
         ("a.yaml:3: m: model: must be one word, got ['a']",
          "a.yaml:2: m.tasks: must be text, or a list of texts",
          "a.yaml:2: m.description: must be text, or a list of texts",
          "a.yaml:2: m.train: must be a mapping of settings, got 4",
          "a.yaml:2: m.tuned: must be a mapping, as `tune` writes it, got 3",
          "a.yaml:3: m.budget: must be a mapping of settings, got []",
          "a.yaml:3: m.abstain: must be one number from 0 to 1, got 'no'",
          "a.yaml:3: m.placement: must be a mapping of settings, got None",
          "a.yaml:3: m.readers: must be a mapping of roles to readers, got 5")),
        # Other features of YAML.
        (("pipelines:\n  a: &a {reader: Lead}\n  m:\n    <<: *a\n",),
         ("a.yaml:3: m: needs a reader", "a.yaml:4: m: unknown key '<<'; allowed: abstain,")),
        (("x: &a {reader: Led}\npipelines:\n  m: *a\n",),
         ("a.yaml:1: unknown key 'x'; allowed: collections, default",
          "a.yaml:1: m.reader.class: readers has no class 'Led'; did you mean 'Lead'")),
        (("\ufeffpipelines:\r\n  m: {reader: Led}\r\n",),
         ("a.yaml:2: m.reader.class: readers has no class 'Led'; did you mean 'Lead'",)),
        (("pipelines: {m: {reader: Lead}}\n".encode("utf-16"),),
         ("a.yaml: not UTF-8 text (byte 0 is 0xff); save the file as UTF-8",)),
        (("default: {pipelin: lead, pipeline: lead, task: sample}\n",),
         ("a.yaml:1: default: unknown key 'pipelin'; did you mean 'pipeline'",)),
        (("tasks: {t: {class: JsonLines}}\n",), ("a.yaml:1: tasks.t: JsonLines needs the param",)),
        (("tasks: {t: {class: Nope}}\n",), ("a.yaml:1: tasks.t.class: tasks has no class",)),
        (("collections: {a: 3}\n",),
         ("a.yaml:1: collections.a: must be a list of paths, patterns and URLs, got 3",)),
        (("collections: [a]\n",), ("a.yaml:1: collections must be a mapping of names",)),
        (("", "- a\n"), ("b.yaml:1: the file must be a mapping with default",)),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_a_bad_file_is_reported_with_all_its_faults(
    tmp_path: Path, texts: tuple[str | bytes, ...], expected: tuple[str, ...]
) -> None:
    _check(sorted(_errors(tmp_path, texts)), tuple(sorted(expected)))


def test_a_pipeline_that_replaces_a_built_in_one_is_named_with_its_faults(tmp_path: Path) -> None:
    """The faults themselves are in a built-in file, which the user does not know."""
    lines = _errors(
        tmp_path,
        ("pipelines:\n  shuffle-gpt2: {reader: Lead}\n",),
        lambda config: config.select(["shuffle-gpt2-code"]),
    )
    expected = (
        f"a.yaml:2: shuffle-gpt2: shuffle-gpt2-code extends it{REPLACES}",
        f"{PAPER}:25: shuffle-gpt2-code.chunker: needs `class: NAME`",
        f"{PAPER}:26: shuffle-gpt2-code.reader.per_token: Lead has no parameter 'per_token'",
        f"{PAPER}:27: shuffle-gpt2-code.combiner: needs `class: NAME`",
    )
    _check(sorted(lines), expected)


def test_a_users_name_replaces_the_built_in_one_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "pipelines:\n"
        "  lead: {reader: {class: Lead, words: 0o17}}\n"
        "  shuffle-gpt2: {reader: {class: Lead, words: 0x1F}, abstain: 1e-5}\n"
        "  no: {extends: lead}\n"
        "  ~: {extends: lead}\n"
        "  2001-01-01: {extends: lead}\n"
        "tasks:\n  shuffle_test/wsj: {class: Sample}\n",
        encoding="utf-8",
    )
    config = load_config([file])
    points = config.select(["lead", "no", "~", "2001-01-01", "shuffle-gpt2"])
    assert [point.stages["reader"].params["words"] for point in points] == [15, 15, 15, 15, 31]
    [child] = config.select(["shuffle-gpt2-in-domain"])
    assert (child.stages["reader"].name, child.abstain) == ("Lead", 1e-5)
    tasks = config.tasks_named(["shuffle_test/*"])
    assert [task.spec.name for task in tasks] == ["Sample", "ShuffleTest", "ShuffleTest"]


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
            ":2: p: sweeps make more than 50 points: sweep fewer values, split the pipeline",
        ),
        (
            f"pipelines:\n  p:\n    chunker: {{class: FixedTokens, size: [{_SWEPT}]}}\n"
            f"    retriever: {{class: First, k: [{_SWEPT}]}}\n    reader: Lead\n",
            ":2: p: sweeps make more than 50 points",
        ),
        (
            "pipelines:\n  p: {reader: Lead, retriever: {class: Fusion, retrievers: ["
            + "{sweep: [BM25, TfIdf]}, " * 40
            + "]}}\n",
            ":2: p: sweeps make more than 50 points",
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
def test_an_oversized_config_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, fault: str
) -> None:
    monkeypatch.setattr("leporello.config.builder.POINTS", 50)
    lines = _errors(tmp_path, (text,), kind=ConfigError)
    assert f"a.yaml{fault}" in "\n".join(lines)
    assert max(map(len, lines)) < 1_200


def test_a_changed_config_loads_or_is_refused(tmp_path: Path) -> None:
    """Changes are to bytes, lines and tokens; `make attack FAMILY=yaml` tries thousands."""
    problems = [case(Random(number), number).run(tmp_path) for number in range(8)]
    assert [*filter(None, problems)] == []
