"""Verbs that list pipelines, classes, models, the schema of configs, and the cache."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leporello.cli.options import AsJson, ConfigFiles, print_json, print_plain, size_text, stdout
from leporello.core.environment.input_limits import size_of
from leporello.core.errors import UserError, counted

if TYPE_CHECKING:
    from leporello.cache.store import CacheEntry

_ASKED = 100_000_000  # bytes above which `cache gc` asks


def list_things(
    what: Annotated[
        str,
        typer.Argument(
            help="Kind of entries, such as pipelines, tasks or chunkers, or name of a pipeline,"
            " task, suite or class. [default: an overview]",
            metavar="[KIND|NAME]",
        ),
    ] = "",
    search: Annotated[
        str, typer.Option("--search", help="List only entries that contain this text.")
    ] = "",
    offline: Annotated[
        bool, typer.Option("--offline", help="List only pipelines that run without a network.")
    ] = False,
    config: ConfigFiles = None,
    as_json: AsJson = False,
) -> None:
    """List pipelines, tasks and classes, or describe one of them."""
    from leporello.cli.display import tables
    from leporello.config.reference.catalogue import KINDS_OF_THINGS, listing, starters

    if what and what not in KINDS_OF_THINGS and _describe(what, config or (), as_json=as_json):
        return
    lists = listing(config or (), what, search, is_offline=offline)
    if not any(lists.values()):
        raise UserError(f"no entry contains {search!r}" if search else "no such entry")
    if as_json:
        print_json(lists)
    elif what or search or offline or config:
        tables.listing(stdout(), lists)
    else:
        tables.overview(stdout(), starters(), {kind: len(rows) for kind, rows in lists.items()})


def _describe(name: str, config: Sequence[Path], *, as_json: bool) -> bool:
    """Prints the pipeline, task, suite or class of a name; returns whether one exists."""
    from leporello.cli.display import tables
    from leporello.config import load_config
    from leporello.config.reference.catalogue import first_line, purpose_of
    from leporello.config.reference.class_page import class_page
    from leporello.core.yaml.scalars import as_yaml

    if page := class_page(name):
        print_json(page.as_json()) if as_json else tables.page(stdout(), page)
        return True
    loaded = load_config(config)
    if name in loaded.pipelines:
        selected = loaded.select([name])
        section, entries = "pipelines", {point.name: point.resolved() for point in selected}
        texts = [*map(purpose_of, selected)]
    elif name in loaded.tasks:
        section, entries = "tasks", {name: loaded.tasks[name].resolved()}
        texts = [first_line(loaded.tasks[name].spec.cls)]
    elif name in loaded.suites:
        section, entries, texts = "suites", {name: loaded.suites[name].tree.plain()}, []
    else:
        return False
    if as_json:
        print_json(entries)
        return True
    for text in dict.fromkeys(filter(None, texts)):
        print_plain(stdout(), f"# {text}")
    typer.echo(as_yaml({section: entries}))
    return True


def models(*, as_json: AsJson = False) -> None:
    """List the models on this machine and on local servers, by the names that --model accepts.

    Ollama, llama.cpp, vLLM and LM Studio are queried at their usual ports.
    """
    from leporello.cli.display import tables
    from leporello.models.naming import known_models

    available = [*known_models()]
    if as_json:
        print_json([asdict(model) for model in available])
    else:
        tables.models(stdout(), available)


def schema() -> None:
    """Print the JSON Schema of pipelines.yaml, for completion and validation in editors.

    Store it beside your file with `leporello schema > leporello.schema.json`, and begin the file
    with `# yaml-language-server: $schema=leporello.schema.json`: editors with the YAML language
    server (VS Code's YAML extension, Neovim, Emacs, Helix, Zed) then complete, check and explain.
    In PyCharm, add the schema under Settings, JSON Schema Mappings.
    """
    from leporello.config.reference.schema import schema as make_schema

    # No public address has the schema, so a user's folder has its own copy (decision 42).
    typer.echo(json.dumps(make_schema(), ensure_ascii=False))  # indents would take 50 ms


cache = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # as in `leporello.cli`
    help="List or shrink the cache that runs share.",
)


@cache.command()
def ls(as_json: AsJson = False) -> None:
    """List the number and size of cached entries by kind."""
    from leporello.cache.store import Cache
    from leporello.cli.display.tables import cache_contents
    from leporello.core.files import cache_directory

    stored = Cache(cache_directory())
    kinds = _by_kind(stored.entries())
    if as_json:
        sizes = {k: {"entries": len(v), "bytes": sum(e.size for e in v)} for k, v in kinds.items()}
        print_json({"directory": stored.root, "kinds": sizes})
    else:
        cache_contents(stdout(), stored.root, kinds)


@cache.command()
def gc(
    keep: Annotated[
        str,
        typer.Option(
            "--keep", metavar="SIZE", help="Keep at most this size, such as 5GB, 500MB or 0GB."
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be removed, and remove nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before more than 100 MB are removed.")
    ] = False,
) -> None:
    """Remove the least recently used entries until at most SIZE is left.

    Models are removed last. A running command computes removed entries again.
    """
    from leporello.cache.store import Cache
    from leporello.cli.display.tables import cache_contents
    from leporello.core.files import cache_directory

    stored = Cache(cache_directory())
    try:
        surplus = stored.surplus(size_of(keep))
    except ValueError as error:
        raise UserError(f"--keep: {error}") from None
    size = sum(entry.size for entry in surplus)
    removable = f"{counted(len(surplus), 'entry')}, {size_text(size)}"
    is_asked = size > _ASKED and not yes and sys.stdin.isatty()
    if surplus and (dry_run or is_asked):
        cache_contents(stdout(), stored.root, _by_kind(surplus))
    if dry_run:
        typer.echo(f"would remove {removable}")
        return
    if is_asked:
        typer.confirm(f"Remove {removable}?", abort=True)
    removed = stored.remove(surplus)
    freed = sum(entry.size for entry in removed)
    typer.echo(f"removed {counted(len(removed), 'entry')}, {size_text(freed)}")


def _by_kind(entries: Iterable[CacheEntry]) -> dict[str, list[CacheEntry]]:
    kinds: dict[str, list[CacheEntry]] = {}
    for entry in entries:
        kinds.setdefault(entry.kind, []).append(entry)
    return kinds
