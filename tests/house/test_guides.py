"""Tests that run the commands of the guides; `test_docs` runs those of README and tutorial."""

import json
import re
import shlex
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest
from command_line import HERE, ROOT, leporello, write_files
from official_rows import scrolls_row, zero_scrolls_row
from row_files import write_rows

pytestmark = pytest.mark.slow

ASIDE = {  # what a command needs that this test lacks
    "a network": r"\bpip |http://|s3://|google/",
    "a model or its server": r"MODEL|ollama:|vllm|llama-server|NAME|smollm2|gpt2",
    "a person or an input": r" (serve|mcp) |ask report.pdf( --json.*)?$",
    "several machines": r"\bray\b",
    "files of a benchmark": r"muld-|scrolls-|zero-|sum-sort|[nN]ovels",
    "a training": r"recipes|--calibrate|calibration|make ",
}
NAMES = {  # names in the guides, and what stands for them here
    "PIPELINE…": "best-sentence",
    "TASK": "sample",
    "short long": "best-sentence default",
    "RUN EXAMPLE": "runs/both story-01",
    "RUN": "runs/both",
    "runs/ONE": "runs/one",
    "runs/OTHER": "runs/both",
    "report.pdf": "report.md",
    "--budget 20m": "--budget '6 runs'",
    "length=131072,samples=20": "length=4096,samples=1",
}
FIELDS = "fields:\n  vote: {type: text, description: What was the vote?}\n"
PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def commands() -> Iterator[tuple[str, str]]:
    """Yields the pages with each of their commands, without comments."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        for block in re.findall(r"```console\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            for line in block.replace("\\\n", "").splitlines():
                if page.stem not in {"tutorial", "index"}:
                    yield page.stem, re.sub(r"\s+# .*", "", line)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the guides name."""
    path = tmp_path_factory.mktemp("guides")
    text = (ROOT / "leporello/tasks/sample/report.md").read_text("utf-8")
    documents = ("report.md", "letters/one.md", "notes/note.md", "contracts/first.md")
    types = {"fields.yaml": FIELDS, "person.json": json.dumps(PERSON)}
    write_files(path, dict.fromkeys(documents, text) | types)
    texts = {str(n): text[n * 2000 : n * 2000 + 3000] for n in range(6)}
    asked = {name: f"Who wrote?\n\n{part}" for name, part in texts.items()}
    rows = [scrolls_row(name, part, "Ann") for name, part in asked.items()]
    write_rows(path / "DATA/scrolls/qasper/validation.jsonl", *rows)
    rows = [zero_scrolls_row(n, text=part, query="Who wrote?") for n, part in texts.items()]
    write_rows(path / "DATA/zero_scrolls/musique/validation.jsonl", *rows)
    row = {"input": asked["0"], "output": ["Ann"]}
    write_rows(path / "DATA/muld/hotpotqa_validation.json.bz2", row)
    for run in ("runs/one", "runs/both"):
        sample = ("--task", "sample", "--limit", "3", "--out", run)
        leporello("run", "best-sentence", "default", *sample, *HERE, folder=path)
    return path


@pytest.mark.parametrize("page", sorted({page for page, _ in commands()}))
def test_commands_of_a_guide_run(folder: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEPORELLO_DATA", str(folder / "DATA"))
    for command in (command for name, command in commands() if name == page):
        if any(re.search(pattern, command) for pattern in ASIDE.values()):
            continue
        words = shlex.split(reduce(lambda text, pair: text.replace(*pair), NAMES.items(), command))
        words = words[words[0] == "python" :][1:]
        leporello(*words, *(["--limit", "2"] if words[0] == "run" else []), folder=folder)
