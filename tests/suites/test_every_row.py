"""Every row of the papers' tables runs: official files, and tiny models of the same families."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from command_line import HERE, leporello, read_lines
from endpoint_server import reply, running
from official_rows import scrolls_row, zero_scrolls_row
from row_files import write_rows
from tiny_models import save, save_classifier, save_masked
from transformers import T5Config, T5ForSequenceClassification

from leporello.api import load_pipelines
from leporello.config.suite_files import suite_named
from leporello.config.suites import Suite
from leporello.suites import suite_tables

pytestmark = pytest.mark.integration

TEXT = "The miller gave the cat a pair of boots. She ran to the king. He gave her the mill."
QUESTION = "What did the miller give the cat?"
THESIS = f"# Introduction\n\n{TEXT}\n\n# Methods\n\n{TEXT}"
SCRIPT = f"INT. MILL\n\nHARRY\n{TEXT}\n\nHARRY\nGoodbye, cat."
OPTIONS = "(A) boots\n(B) a hat\n(C) a mill\n(D) gold"
REVIEWS = [f"Review {n}:\n{TEXT}\n\n" for n in (1, 2, 3)]

MULD: Mapping[str, tuple[str, Any]] = {
    "narrativeqa": (f"{QUESTION}\n\ufeff{TEXT}", ["boots"]),
    "hotpotqa": (f"{QUESTION}\n\n{TEXT}", ["boots"]),
    "opensubtitles": ("Hello.\nWho is it?\nIt is me.", "Hallo.\nWer ist da?\nIch bin es."),
    "style_change": ("\n".join([TEXT, TEXT[:40], "A king sat.", "It rained."]), "[1, 1, 2, 2]"),
    "character_id": (f"Harry\n{SCRIPT}", "Hero"),
    "vlsp": (THESIS, ["A cat gets boots."]),
}
SCROLLS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("gov_report", "summ_screen_fd"), (TEXT, "A cat gets boots.")),
    **dict.fromkeys(("qmsum", "qasper", "narrative_qa"), (f"{QUESTION}\n\n{TEXT}", "boots")),
    "quality": (f"{QUESTION}\n\n {OPTIONS.replace(chr(10), chr(10) + ' ')}\n\n{TEXT}", "boots"),
    "contract_nli": (f"The cat got boots.\n\n{TEXT}", "Entailment"),
}
QUERIES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("gov_report", "summ_screen_fd"), ("", "A cat gets boots.")),
    **dict.fromkeys(
        ("qmsum", "squality", "qasper", "narrative_qa", "musique"), (QUESTION, "boots")
    ),
    "quality": (f"{QUESTION}\n{OPTIONS}", "A"),
    "space_digest": ("", "50%"),
    "book_sum_sort": ("", "2, 1, 3"),
}


def write_data(data: Path) -> None:
    """Writes the papers' tasks in their official files, with one example in each split."""
    for split in ("train", "validation", "test"):
        for name, (text, output) in MULD.items():
            row = {"input": text, "output": output, "metadata": ""}
            write_rows(data / f"muld/{name}_{split}.json.bz2", row)
        for name, (text, gold) in SCROLLS.items():
            write_rows(
                data / f"scrolls/{name}/{split}.jsonl", scrolls_row("one", text, gold, is_hard=True)
            )
        for name, (query, gold) in QUERIES.items():
            row = zero_scrolls_row("one", text=TEXT, query=query, output=gold)
            if name in ("space_digest", "book_sum_sort"):
                row = zero_scrolls_row("one", text="".join(REVIEWS).strip(), output=gold)
                start = row["document_start_index"]
                starts = [start + n * len(REVIEWS[0]) for n in range(len(REVIEWS))]
                row["inner_docs_start_indices"] = starts
            write_rows(data / f"zero_scrolls/{name}/{split}.jsonl", row)
        article = {"text": TEXT.replace(". ", ".\n")}
        file = data / f"shuffle_test/coherence_{split}_set.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([article]), encoding="utf-8")
    write_rows(data / "billsum/us_test_data_final_OFFICIAL.jsonl", {"bill_id": "b", "text": TEXT})
    post = {"id": "p", "selftext_without_tldr": TEXT, "trimmed_title": "a cat"}
    write_rows(data / "reddit_tifu/tifu_all_tokenized_and_filtered.json", post)


# Smaller values for parameters of stages, where a class has them: a model of random weights
# writes until it reaches its limit.
SMALLER: Mapping[str, Any] = {
    "max_new_tokens": 3, "min_new_tokens": 0, "num_beams": 1, "max_input_tokens": 120,
    "max_fused_tokens": 240, "chunk_tokens": 64, "prefix_tokens": 16, "dtype": "float32",
    "batch_tokens": 4096, "device": "cpu",
}  # fmt: skip
QUICK = {"narrativeqa": "test", "hotpotqa": "validation", "opensubtitles": "test", "vlsp": "test"}
SLOW = "smollm2-135m-instruct"
SIZES: Mapping[str, dict[str, Any]] = {"Windows": {"size": 64, "stride": 32}, "Lines": {"size": 60}}
CLASSES = {"Classifier": ("Hero", "Villain/Antagonist"), "PairClassifier": ("different", "same")}


def write_pipelines(folder: Path, suite: Suite, server: str, *, official: bool) -> Path:
    """Writes a config in which the suite's rows read with tiny models, and returns its path.

    With `official`, MuLD's questions have their metrics, some of which start Java.
    """
    names = {name for row in suite.rows for name in suite.pipelines(row).values()}
    points = {point.name: point for point in load_pipelines([]).select(sorted(names))}
    tiny = {name: _smaller(folder, points[name].stages, server) for name in sorted(names)}
    rows = {
        row: {
            "pipelines": {c: f"tiny-{p}" for c, p in suite.pipelines(row).items()},
            "published": [*declared.published],
            "settings": declared.settings,
        }
        for row, declared in suite.rows.items()
    }
    tasks: dict[str, dict[str, Any]] = {
        f"shuffle_test/{name}": {
            "class": "ShuffleTest", "corpus": corpus, "split": "test", "shuffles": 1,
            "unit": "line" if corpus == "wsj" else "punkt",
        }
        for name, corpus in (("wsj", "wsj"), ("legal", "billsum"), ("reddit", "reddit_tifu"))
    }  # fmt: skip
    tasks |= {
        f"muld/{name}": {"class": "Muld", "name": name, "split": split, "metrics": ["f1"]}
        for name, split in QUICK.items()
        if not official
    }
    config = {
        "pipelines": {
            f"tiny-{name}": {"extends": name, "tasks": [], **stages}
            for name, stages in tiny.items()
        },
        "tasks": tasks,
        "suites": {suite.name: {"rows": rows}},
    }
    path = folder / f"{suite.name}.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def learned_rows(suite: Suite) -> list[str]:
    """Returns the rows whose readers have no value before `train` learns it."""
    names = {row: [*suite.pipelines(row).values()] for row in suite.rows}
    points = {
        p.name: p for p in load_pipelines([]).select(sorted({n for r in names.values() for n in r}))
    }
    readers = {name: point.stages["reader"] for name, point in points.items()}
    return [
        row
        for row, pipelines in names.items()
        if all(
            hasattr(readers[n].cls, "learn") and "model" not in readers[n].params for n in pipelines
        )
    ]


def _smaller(folder: Path, stages: Mapping[str, Any], server: str) -> dict[str, Any]:
    reader = stages["reader"]
    model = str(reader.params.get("model") or "")
    if "base_url" in reader.params:
        return {"reader": {"base_url": server, "api_key": ""}}
    if "/" not in model and model != SLOW:  # no model, or a small one that is installed
        return {}
    kind, names = reader.cls.__name__, {field.name for field in fields(reader.cls)}
    smaller: dict[str, Any] = {name: v for name, v in SMALLER.items() if name in names}
    labels = ("original", "shuffled") if "roberta" in model else CLASSES.get(kind, ())
    smaller["model"] = str(_model(folder, kind, model, labels))
    changed: dict[str, Any] = {"reader": smaller}
    for role in ("chunker", "combiner"):
        if stages[role].params.get("tokenizer"):
            changed[role] = SIZES.get(stages[role].cls.__name__, {}) | {
                "tokenizer": smaller["model"]
            }
    return changed


def _model(folder: Path, kind: str, model: str, labels: tuple[str, ...]) -> Path:
    """Returns the folder of a tiny model of the same family, which it saves if it is missing."""
    families = ("longformer", "roberta", "bert", "gpt2", "led-", "bart", "t5")
    family = next((name for name in families if name in model.casefold()), "t5").rstrip("-")
    family = "gpt2" if model == SLOW else family
    place = folder / f"{family}-{kind}"
    if place.exists():
        return place
    if kind == "PseudoLogLikelihood":
        save_masked("bert", place)
    elif not labels:
        save(family, place)
    elif family == "t5":
        save("t5", place)
        config = T5Config.from_pretrained(place)
        config.id2label = dict(enumerate(labels))
        torch.manual_seed(0)
        T5ForSequenceClassification(config).save_pretrained(place)
    else:
        save_classifier(family, place, labels)
    return place


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the official files in `data`."""
    folder = tmp_path_factory.mktemp("papers")
    write_data(folder / "data")
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Runs a server that answers every prompt, and yields its address."""
    with running(lambda request: reply(request, "boots")) as server:
        yield server.base_url


@pytest.mark.parametrize(
    ("name", "official"),
    [
        ("muld", False),
        ("scrolls", True),
        ("zero_scrolls", True),
        ("shuffle_test", True),
        pytest.param("muld", True, marks=pytest.mark.slow),
    ],
)
def test_rows_run_on_each_column(name: str, world: Path, server: str, *, official: bool) -> None:
    suite, folder = suite_named(name), world / f"{name}-{official}"
    folder.mkdir()
    configs = [write_pipelines(folder, suite, server, official=official)]
    options = ("--data", world / "data", "--config", configs[0])
    rows = [*suite.rows]
    for row in learned_rows(suite):
        trained = leporello("train", row, "--suite", name, *options, "--out", folder / row)
        words = trained.stdout.split()  # the command that runs the row
        configs += [Path(b) for a, b in pairwise(words) if a == "--config" and b != str(configs[0])]
        rows[rows.index(row)] = f"{row}-trained"
    suite, out = suite_named(name, configs), folder / "run"
    more = [word for config in configs[1:] for word in ("--config", config)]
    leporello("run", "--suite", name, *rows, *HERE, *options, *more, "--out", out)
    table, *_ = suite_tables(suite, [out], files=configs)
    entries = {row.name: row.parts for row in table.rows if row.ours}
    for row in rows:
        for column, pipeline in suite.pipelines(row).items():
            task = suite.columns[column].task
            file, *_ = sorted(out.glob(f"{pipeline}/{task}*/predictions.jsonl"))
            answers = read_lines(file)
            assert answers, (pipeline, task)
            assert not [answer for answer in answers if "error" in answer], (pipeline, task)
            if official and column in entries[row]:  # other tables have the other columns
                assert None not in entries[row][column].numbers, (row, column)
    assert entries.keys() == {*rows}
