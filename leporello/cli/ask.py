"""Commands that ask your own files: one question, a conversation, a table, a page, an agent."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from leporello.cli.options import AsJson, Files, print_json, stderr, stdout, with_options
from leporello.core.errors import UserError
from leporello.jobs.options import AskOptions
from leporello.storage import to_path
from leporello.storage.paths import is_there

OVER = "over-files"  # the pipeline of `--over`


@with_options(AskOptions)
def ask(
    options: AskOptions,
    *,
    files: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders, patterns, URLs; then a question, else a prompt takes them.",
            metavar="FILE... [QUESTION]",
        ),
    ],
    all_passages: Annotated[
        bool, typer.Option("--passages", help="Show every passage that was selected.")
    ] = False,
    each: Annotated[bool, typer.Option("--each", help="One answer a file, as a table.")] = False,
    over: Annotated[
        bool, typer.Option("--over", help=f"One answer from all files (--pipeline {OVER}).")
    ] = False,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", help="JSON or YAML: the type of the answer. Prints JSON."),
    ] = None,
    kind: Annotated[
        str, typer.Option("--type", help="The same in a word: date, number, yes_no, ….")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Asks one's own documents, and shows where the answer stands.

    Without a question, it opens a prompt; what is no terminal gives a question a line.
    """
    from leporello.cli.display.answer import show_answer, show_each
    from leporello.cli.prompt import Prompt
    from leporello.loaders.collection import unreadable
    from leporello.runs.ask import AskSettings, Session

    paths, question = _parted(files)
    if (each or over) and (question is None or (each and over)):
        raise UserError("--each and --over take a question, and one of them at a time")
    typed = _schema(schema, kind) if schema or kind else ""
    if typed and (each or question is None):
        raise UserError("--schema and --type take a question; many files: the verb `extract`")
    named = options.pipeline or (OVER if over else "")
    session = Session.open(paths, AskSettings(**vars(replace(options, pipeline=named))))
    document = session.document
    broken = bool(
        document.members and unreadable(document)
    )  # the exit status, whatever is answered
    if question is None:
        prompt = Prompt(
            session, stderr() if as_json else stdout(), all_passages=all_passages, as_json=as_json
        )
        raise typer.Exit(prompt.run() or int(broken))
    if each:
        answers = [*session.each(question)]
        row: Any = [{"document": answer.document.id, **answer.row()} for answer in answers]
        show = partial(show_each, stdout(), answers, session.document)
    else:
        answer = session.ask(question, schema=typed)
        row, show = answer.row(), partial(show_answer, stdout(), answer, all_passages=all_passages)
    print_json(row) if as_json or typed else show()
    raise typer.Exit(int(broken))


def _schema(path: Path | None, kind: str) -> str:
    """Returns the JSON Schema that the options ask for."""
    from leporello.runs.extract import schema_from
    from leporello.text.typed.schema import AnswerTypeError, schema_of

    if path and kind:
        raise UserError("--schema and --type both say the type of the answer: give one of them")
    try:
        return schema_from(path) if path else schema_of(kind)
    except AnswerTypeError as error:
        raise UserError(f"--type: {error}") from None


@with_options(AskOptions)
def extract(
    options: AskOptions,
    *,
    files: Files,
    schema: Annotated[
        Path, typer.Option("--schema", help="JSON or YAML: `fields`, or JSON Schema of an object.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The table: a .csv or .parquet file.")],
) -> None:
    """Fills a table, a row a document and a column a field, with where each value stands."""
    from leporello.runs.ask import AskSettings, Session
    from leporello.runs.extract import check_table, fields_from, write_table
    from leporello.runs.extract import extract as rows_of

    fields = fields_from(schema)
    check_table(out)
    session = Session.open([*map(to_path, files)], AskSettings(**vars(options)))
    rows = [*rows_of(session, fields)]
    write_table(out, fields, rows)
    cells = [cell for row in rows for cell in row.cells]
    failed = sum(cell.failed for cell in cells)
    filled = sum(not cell.reason for cell in cells)
    absent = len(cells) - filled - failed
    told = f"{len(rows)} documents × {len(fields)} fields: {filled} values, {absent} not there"
    typer.echo(f"{out}: {told}, {failed} failed")
    raise typer.Exit(int(failed > 0))


def _parted(arguments: list[str]) -> tuple[list[Path], str | None]:
    """Returns files and the question; the last argument is one unless a file is named so."""
    from leporello.loaders.files import known_suffixes

    *files, last = arguments
    if not files or is_there(last):
        return [*map(to_path, arguments)], None
    if (
        last.strip()
        and not re.search(r"\s", last)
        and Path(last).suffix.lower() in known_suffixes()
    ):
        raise UserError(f"{last}: there is no such file; a question in one word ends without it")
    return [*map(to_path, files)], last


@with_options(AskOptions, loader=None)
def serve(
    options: AskOptions,
    *,
    files: Files,
    port: Annotated[int, typer.Option("--port", help="On 127.0.0.1; 0 takes a free one.")] = 0,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Opens one's own documents as a page, to ask them in the browser; Ctrl-C ends it.

    Nobody else's machine reaches it, and no other file is shown.
    """
    import webbrowser

    from leporello.runs.ask import AskSettings, Session
    from leporello.serving import serve as serve_session

    session = Session.open([*map(to_path, files)], AskSettings(**vars(options)))

    def ready(address: str) -> None:
        typer.echo(address)
        if browse:
            webbrowser.open(address)

    # Where Ctrl-C was ignored at the start, as in a script's background, none is raised.
    with suppress(KeyboardInterrupt):
        serve_session(session, port, ready)
    stdout().print("ended")


@with_options(AskOptions, loader=None)
def mcp(
    options: AskOptions,
    *,
    files: Files,
) -> None:
    """Serves one's own documents to an agent, by MCP over standard input and output.

    Its tools are ask, passages and outline; each reply has the ledger. It ends with its input.
    """
    from leporello.core.environment.extras import require
    from leporello.runs.ask import AskSettings, Session

    require("mcp", "mcp")
    from leporello.serving.mcp import mcp_server

    session = Session.open([*map(to_path, files)], AskSettings(**vars(options)))
    mcp_server(session).run("stdio")
