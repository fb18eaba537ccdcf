"""The verbs `list` and `schema`: what there is."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from leporello.cli.options import AsJson, ConfigFiles, print_json, stdout


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
