"""Commands that list: pipelines and classes, models, the schema of configs, the cache."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from leporello.cli.options import AsJson, ConfigFiles, Data, RunAt, print_json, stdout
from leporello.core.errors import UserError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def list_things(
    what: Annotated[
        str,
        typer.Argument(
            help="pipelines, tasks, chunkers, …, or a class, with its parameters; all if left out",
            metavar="[KIND|CLASS]",
        ),
    ] = "",
    config: ConfigFiles = None,
    as_json: AsJson = False,
) -> None:
    """Lists what there is, with signatures; of one class, says what each parameter means."""
    from leporello.cli.display import tables
    from leporello.config.reference.catalogue import KINDS_OF_THINGS, listing

    if what and what not in KINDS_OF_THINGS:
        from leporello.config import load_config
        from leporello.config.reference.class_page import class_page

        if page := class_page(load_config(config or ()), what):
            print_json(page.as_json()) if as_json else tables.page(stdout(), page)
            return
    lists = listing(config or (), what)
    if as_json:
        print_json(lists)
    else:
        tables.listing(stdout(), lists)


def models(
    *,
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders of models besides.", metavar="FOLDER...")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Lists the models on this machine, and what local servers have, by the words that name them.

    Ollama, llama.cpp, vLLM and LM Studio are asked at their usual ports.
    """
    from leporello.cli.display import tables
    from leporello.models.inventory import known_models

    found = [*known_models(folders or ())]
    if as_json:
        print_json([asdict(model) for model in found])
    else:
        tables.models(stdout(), found)


def schema() -> None:
    """Prints the JSON Schema of pipelines.yaml, for editors: what may stand where, and its meaning.

    Keep it beside your file, `leporello schema > leporello.schema.json`, and begin the file with
    `# yaml-language-server: $schema=leporello.schema.json`: editors with the YAML language server
    (VS Code's YAML extension, Neovim, Emacs, Helix, Zed) then complete, check and explain. PyCharm
    takes the schema under Settings, JSON Schema Mappings.
    """
    from leporello.config.reference.schema import schema as make_schema

    typer.echo(json.dumps(make_schema(), ensure_ascii=False))  # indents would take 50 ms


cache = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # as that of `leporello.cli`
    help="What is kept between runs, and why or why not.",
)


@cache.command()
def ls(as_json: AsJson = False) -> None:
    """Lists how much is kept, of which kind."""
    from leporello.cache.store import Cache, CacheEntry
    from leporello.cli.display.tables import kept
    from leporello.models.locate import cache_directory

    stored = Cache(cache_directory())
    kinds: defaultdict[str, list[CacheEntry]] = defaultdict(list)
    for entry in stored.entries():
        kinds[entry.kind].append(entry)
    if as_json:
        sizes = {k: {"entries": len(v), "bytes": sum(e.size for e in v)} for k, v in kinds.items()}
        print_json({"directory": stored.root, "kinds": sizes})
    else:
        kept(stdout(), stored.root, kinds)


@cache.command()
def why(
    run: RunAt,
    example: Annotated[str, typer.Argument(help="An example's id")],
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    as_json: AsJson = False,
) -> None:
    """Tells what of an example is kept, and in which field the nearest other entry differs."""
    from leporello.analysis.cache_misses import why as why_not
    from leporello.cli.display.tables import reuses

    example_reuses = why_not(run, example)
    if as_json:
        print_json([asdict(reuse) for reuse in example_reuses])
    else:
        reuses(stdout(), example_reuses)


@cache.command()
def gc(
    keep: Annotated[
        str, typer.Option("--keep", metavar="SIZE", help="5GB, 500MB, 0: what may stay.")
    ],
) -> None:
    """Removes what was not used for longest, until no more than SIZE is kept; models go last."""
    from leporello.cache.store import Cache
    from leporello.models.locate import cache_directory

    removed = Cache(cache_directory()).collect(_size(keep))
    freed = sum(entry.size for entry in removed)
    typer.echo(f"removed {len(removed):,} entries, {freed / 1e6:,.1f} MB")


def _size(text: str) -> int:
    """Returns the bytes that a text such as `5GB` means."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise UserError(f"--keep {text}: must be a size, as 5GB, 500MB or 0")
    return int(float(match[1]) * _UNITS[match[2].upper()])
