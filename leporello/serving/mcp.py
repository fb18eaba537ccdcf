"""The tools of `tools` for agents, by the Model Context Protocol over standard input and output."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel

from leporello.core import __version__
from leporello.core.errors import UserError
from leporello.runs.ask import Session
from leporello.serving.tools import TOOLS, as_utf8, parameters_of, purpose_of

_ONLY_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def mcp_server(session: Session) -> MCPServer:
    """Returns a server whose tools are about one document; its `run` serves until input ends."""
    name, length = as_utf8(session.document.id), len(session.document.text)
    server = MCPServer(
        "leporello",
        version=__version__,
        instructions=f"Answers from {name} ({length:,} characters), which need not be read whole."
        " Each answer has its passages and a ledger: what was read, and what was not.",
        log_level="WARNING",
    )
    for tool in TOOLS:
        description = f"{purpose_of(tool)}\n\nIt is about {name}."
        server.add_tool(_bound(tool, session), description=description, annotations=_ONLY_READS)
    return server


def _bound(tool: Callable[..., BaseModel], session: Session) -> Callable[..., BaseModel]:
    """Returns a tool without its first parameter; the user's mistakes are told to the agent."""

    @wraps(tool)
    def call(**given: object) -> BaseModel:
        try:
            return tool(session, **given)
        except UserError as error:
            raise ToolError(str(error)) from error

    own = signature(tool, eval_str=True).replace(parameters=parameters_of(tool))
    call.__signature__ = own  # type: ignore[attr-defined]  # what the schema is made of
    return call
