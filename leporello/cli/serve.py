"""Verbs that serve documents: `serve` in the browser, `mcp` to agents."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from leporello.cli.options import Files, stdout, with_options
from leporello.jobs.options import AskOptions
from leporello.storage import to_path


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
