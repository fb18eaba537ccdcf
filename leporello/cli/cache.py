"""The verb `cache`: what is kept between runs."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import asdict
from typing import Annotated

import typer

from leporello.cli.options import AsJson, Data, RunAt, print_json, stdout
from leporello.core.errors import UserError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # as that of `leporello.cli`
    help="What is kept between runs, and why or why not.",
)

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@app.command()
def ls(as_json: AsJson = False) -> None:
    """Lists how much is kept, of which kind."""
    from leporello.cache.store import Cache, CacheEntry
    from leporello.cli.display.tables import kept
    from leporello.models.locate import cache_directory

    cache = Cache(cache_directory())
    kinds: defaultdict[str, list[CacheEntry]] = defaultdict(list)
    for entry in cache.entries():
        kinds[entry.kind].append(entry)
    if as_json:
        sizes = {k: {"entries": len(v), "bytes": sum(e.size for e in v)} for k, v in kinds.items()}
        print_json({"directory": cache.root, "kinds": sizes})
    else:
        kept(stdout(), cache.root, kinds)


@app.command()
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


@app.command()
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
