"""The verb `mcp`: one's own files for agents."""

from __future__ import annotations

from typing import Annotated

import typer

from leporello.cli.ask import PipelineName
from leporello.cli.options import ConfigFiles, Model, NoCache, Overrides, with_model
from leporello.storage import to_path


def mcp(
    *,
    files: Annotated[
        list[str], typer.Argument(help="Files, folders, patterns, URLs.", metavar="FILE...")
    ],
    pipeline: PipelineName = "",
    model: Model = "",
    config: ConfigFiles = None,
    overrides: Overrides = None,
    no_cache: NoCache = False,
) -> None:
    """Serves one's own documents to an agent, by MCP over standard input and output.

    Its tools are ask, passages and outline; each reply has the ledger. It ends with its input.
    """
    from leporello.core.environment.extras import require
    from leporello.runs.ask import AskSettings, Session

    require("mcp", "mcp")
    from leporello.serving.mcp import mcp_server

    settings = AskSettings(pipeline, config or (), with_model(overrides, model), not no_cache)
    mcp_server(Session.open([*map(to_path, files)], settings)).run("stdio")
