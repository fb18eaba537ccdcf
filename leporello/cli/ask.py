"""Verbs that answer questions about your own files: `ask`, `extract`, `serve` and `mcp`."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leporello.cli.options import (
    AsJson,
    Files,
    print_json,
    program,
    stderr,
    stdout,
    waiting,
    with_options,
)
from leporello.core.errors import UserError, counted
from leporello.core.files import at_home
from leporello.jobs.options import AskOptions
from leporello.storage import to_path
from leporello.storage.paths import is_there

if TYPE_CHECKING:
    from leporello.runs.ask import Session


@with_options(AskOptions)
def ask(
    options: AskOptions,
    *,
    files: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders, patterns or URLs; the question comes last. Without a question,"
            " open a prompt.",
            metavar="FILE... [QUESTION]",
        ),
    ],
    all_passages: Annotated[
        bool, typer.Option("--passages", help="Show every selected passage.")
    ] = False,
    each: Annotated[
        bool, typer.Option("--each", help="Answer for each file separately, and print a table.")
    ] = False,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            help="Answer in the type that this JSON or YAML file declares, and print JSON.",
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--type",
            help="Answer in this type, and print JSON: text, number, integer, date, yes_no, list.",
        ),
    ] = "",
    as_json: AsJson = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also print scores, tokens, seconds and cost.")
    ] = False,
) -> None:
    """Ask a question about your documents, and show where the answer is.

    Without a question, open a prompt. Piped input is read as one question per line.
    """
    paths, question = _paths_and_question(files)
    # Missing files are reported before the libraries of pipelines are imported. With a config, a
    # name may be a collection.
    for path in () if options.config else paths:
        if not is_there(str(at_home(path))) and not has_magic(str(path)):
            raise UserError(f"{path}: this file does not exist")
    from leporello.cli.display.answer import show_answer, show_each
    from leporello.cli.prompt import Prompt
    from leporello.loaders.collection import unreadable

    if each and question is None:
        raise UserError("--each needs a question")
    typed = _schema(schema, kind) if schema or kind else ""
    if typed and (each or question is None):
        raise UserError(
            "--schema and --type need a question, and exclude --each; for a table of many files"
            " use `extract`"
        )
    session = _session(files[: len(paths)], options)
    document = session.document
    # Unreadable files set the exit status, even if the other files have an answer.
    status = int(bool(document.members and unreadable(document)))
    if question is None:
        prompt = Prompt(
            session, stderr() if as_json else stdout(), all_passages=all_passages, as_json=as_json
        )
        raise typer.Exit(prompt.run() or status)
    if each:
        answers = [*session.each(question)]
        row: Any = [{"document": answer.document.id, **answer.row()} for answer in answers]
        show = partial(show_each, stdout(), answers, session.document)
    else:
        start = time.monotonic()
        answer = session.ask(question, schema=typed)
        seconds = time.monotonic() - start if verbose else None
        show = partial(show_answer, stdout(), answer, all_passages=all_passages, seconds=seconds)
        row = answer.row()
    print_json(row) if as_json or typed else show()
    if not (as_json or typed or each) and answer.certainty == "unsure":
        _suggest_server(files, session)
    raise typer.Exit(status)


def _session(files: Sequence[str], options: AskOptions) -> Session:
    from leporello.runs.ask import AskSettings, Session

    with waiting(f"reading {', '.join(files)}"):
        return Session.open([*map(to_path, files)], AskSettings(**vars(options)))


def _suggest_server(files: Sequence[str], session: Session) -> None:
    from leporello.models.servers import running_servers

    if hasattr(session.stages.reader, "base_url"):  # the answer is from a server
        return
    names = [f"{kind}:{m.name}" for kind, models in running_servers().items() for m in models or ()]
    if names:
        command = shlex.join([*program(), "ask", *files, "--model", names[0]])
        text = f"Ask a larger model: {command}"
        stdout().print(text, style="dim", markup=False, soft_wrap=True, no_wrap=True)


def _schema(path: Path | None, kind: str) -> str:
    from leporello.runs.extract import schema_from
    from leporello.text.typed.schema import AnswerTypeError, schema_of

    if path and kind:
        raise UserError("--schema and --type both declare the answer's type: use only one of them")
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
        Path,
        typer.Option(
            "--schema",
            help="Read the fields from this JSON or YAML file: `fields`, or a JSON Schema of an"
            " object.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Write the table to this .csv file.")],
) -> None:
    """Fill a table with a row per document and a column per field, and the place of each value."""
    from leporello.cli.display.answer import show_extracted
    from leporello.runs.extract import check_table, fields_from, write_table
    from leporello.runs.extract import extract as rows_of

    fields = fields_from(schema)
    check_table(out)
    rows = [*rows_of(_session(files, options), fields)]
    write_table(out, fields, rows)
    cells = [cell for row in rows for cell in row.cells]
    failed = sum(cell.failed for cell in cells)
    filled = sum(not cell.reason for cell in cells)
    absent = len(cells) - filled - failed
    counts = f"{counted(filled, 'value')}, {absent} not there"
    size = f"{counted(len(rows), 'document')} × {counted(len(fields), 'field')}"
    show_extracted(stdout(), fields, rows)
    unsure = sum(cell.certainty == "unsure" for cell in cells)
    typer.echo(f"{out}: {size}: {counts}, {failed} failed, {unsure} unsure")
    raise typer.Exit(int(failed > 0))


def _paths_and_question(arguments: list[str]) -> tuple[list[Path], str | None]:
    """Returns the files and the question: the last argument, unless it is an existing file."""
    from leporello.loaders.files import known_suffixes

    *files, last = arguments
    if "" in files:
        raise UserError("the name of a file is empty")
    folders = [file for file in files if Path(file).is_dir()]
    for pattern in arguments if folders else ():
        if "*" in pattern and not re.search(r"[\s/]", pattern):
            within = shlex.quote(str(Path(folders[0]) / pattern))
            raise UserError(f"{pattern}: a pattern begins with its folder, such as {within}")
    # An existing file comes first: a question with the name of a file is less likely.
    if not files or is_there(last):
        return [*map(to_path, arguments)], None
    if (
        last.strip()
        and not re.search(r"\s", last)
        and Path(last).suffix.lower() in known_suffixes()
    ):
        raise UserError(f"{last}: no such file; if it is a question, leave out the suffix")
    return [*map(to_path, files)], last


@with_options(AskOptions, loader=None)
def serve(
    options: AskOptions,
    *,
    files: Files,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65_535,
            help="Listen on this port of 127.0.0.1; 0 picks a free port.",
        ),
    ] = 0,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve a web page that answers questions about your documents; Ctrl-C stops it.

    Only this machine can open the page, and the page shows only the given files.
    """
    import webbrowser

    from leporello.serving import serve as serve_session

    session = _session(files, options)

    def ready(address: str) -> None:
        typer.echo(address)
        if browse:
            webbrowser.open(address)

    # A process that a script starts in the background ignores Ctrl-C, so nothing is raised there.
    with suppress(KeyboardInterrupt):
        serve_session(session, port, ready, session.settings.originals([*map(to_path, files)]))
    stdout().print("ended")


@with_options(AskOptions, loader=None)
def mcp(options: AskOptions, *, files: Files) -> None:
    """Serve your documents to an agent by MCP, over standard input and output.

    The tools are ask, passages and outline; each reply contains its coverage. The server
    stops when its input ends.
    """
    from leporello.core.environment.extras import require

    require("mcp", "mcp")
    from leporello.serving.mcp import mcp_server

    mcp_server(_session(files, options)).run("stdio")
