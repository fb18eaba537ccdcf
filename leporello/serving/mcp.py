"""Serves the functions of `tools` to agents with the Model Context Protocol over standard I/O."""

from collections.abc import Callable
from functools import wraps
from inspect import signature

# An extra, since its SDK brings cryptography; only `mcp` imports this module (decision 43).
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel

from leporello.core import __version__
from leporello.core.errors import UserError
from leporello.core.files import in_utf8
from leporello.runs.ask import Session
from leporello.serving.tools import TOOLS, parameters_of, purpose_of

_ONLY_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def mcp_server(session: Session) -> MCPServer:
    """Returns a server with tools for one document; its method `run` serves until input ends."""
    name, length = in_utf8(session.document.id), len(session.document.text)
    server = MCPServer(
        "leporello",
        version=__version__,
        instructions=f"Answers questions about {name} ({length:,} characters) without reading it"
        " completely. Each answer has its passages and its coverage: how much was read.",
        log_level="WARNING",
    )
    for tool in TOOLS:
        description = f"{purpose_of(tool)}\n\nIt is about {name}."
        server.add_tool(_bound(tool, session), description=description, annotations=_ONLY_READS)
    return server


def _bound(tool: Callable[..., BaseModel], session: Session) -> Callable[..., BaseModel]:
    """Returns a tool without its first parameter, which reports user errors to the agent."""

    @wraps(tool)
    def call(**values: object) -> BaseModel:
        try:
            return tool(session, **values)
        except UserError as error:
            raise ToolError(str(error)) from error

    public = signature(tool, eval_str=True).replace(parameters=parameters_of(tool))
    call.__signature__ = public  # type: ignore[attr-defined]  # the server makes a schema of it
    return call
