"""Serves the functions of `tools` over HTTP, with an OpenAPI description and a page of it."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic.json_schema import models_json_schema
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from leporello.core import __version__
from leporello.core.errors import UserError, reworded
from leporello.runs.ask import Session
from leporello.serving.access import TooLargeError, body
from leporello.serving.documents import DocumentEntry
from leporello.serving.tools import TOOLS, parameters_of, purpose_of

_OPENAPI, _REFERENCES = "3.1.0", "#/components/schemas/{model}"
_SUMMARY = (
    "Ask questions about the open documents. Requests need the header"
    " `Authorization: Bearer TOKEN`, with the token from the address that `serve` printed."
)
_LARGEST = 1_000_000  # maximum size of a request in bytes


class ErrorReply(BaseModel):
    """The request failed."""

    error: str = Field(description="Error message.")


class DocumentsReply(BaseModel):
    """All open documents."""

    documents: list[DocumentEntry]
    largest: int = Field(description="Maximum size of an added file in bytes.")


def tool_routes(session_of: Callable[[int], Session]) -> list[Route]:
    """Returns the routes of the tools, whose documents have numbers, and of their description."""
    return [
        *(Route(f"/{t.__name__}", _endpoint(t, session_of), methods=["POST"]) for t in TOOLS),
        Route("/openapi.json", _description),
        Route("/docs", _page),
    ]


async def refused(_: Request, error: Exception) -> Response:
    """Returns an error as JSON with a message."""
    status, detail = 500, f"{type(error).__name__}: {error}"
    if isinstance(error, HTTPException):
        status, detail = error.status_code, error.detail
    if isinstance(error, UserError):
        status, detail = 413 if isinstance(error, TooLargeError) else 422, str(error)
    messages = {
        "Not Found": "This address does not exist; /docs lists all addresses.",
        "Method Not Allowed": "This address needs another method; see /docs.",
    }
    return JSONResponse({"error": messages.get(detail, detail)}, status)


def _endpoint(
    tool: Callable[..., BaseModel], session_of: Callable[[int], Session]
) -> Callable[[Request], Awaitable[Response]]:
    model = _request_of(tool)

    async def answer(request: Request) -> Response:
        try:
            values = dict(model.model_validate_json(await body(request, _LARGEST)))
            reply = await run_in_threadpool(tool, session_of(values.pop("document")), **values)
        except ValidationError as error:
            raise HTTPException(422, _sentence(error)) from None
        return JSONResponse(reply.model_dump())

    return answer


def _sentence(error: ValidationError) -> str:
    faults = ((".".join(map(str, f["loc"])), reworded(f["msg"])) for f in error.errors())
    return "; ".join(f"{place or 'the request'}: {text}" for place, text in faults)


@cache
def _request_of(tool: Callable[..., BaseModel]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        p.name: (p.annotation, ... if p.default is p.empty else p.default)
        for p in parameters_of(tool)
    }
    number = (int, Field(0, description="Number of the document; /documents lists them.", ge=0))
    name, config = f"{tool.__name__.capitalize()}Request", {"extra": "forbid"}
    return create_model(name, __config__=config, document=number, **fields)  # type: ignore[call-overload,no-any-return]  # fields by name


@cache
def openapi() -> Mapping[str, Any]:
    """Returns the OpenAPI description of the HTTP API."""
    # FastAPI would save eighty lines, but its page loads scripts from elsewhere (decision 43).
    replies = {tool: signature(tool, eval_str=True).return_annotation for tool in TOOLS}
    shown = [ErrorReply, DocumentsReply, *replies.values()]
    _, schemas = models_json_schema(
        [(_request_of(tool), "validation") for tool in TOOLS]
        + [(model, "serialization") for model in shown],
        ref_template=_REFERENCES,
    )
    name = {"name": "name", "in": "query", "schema": {"type": "string"}}
    file = {"content": {"application/octet-stream": {}}, "required": True}
    adds = _operation("Adds a file as another document.", DocumentEntry)
    paths: dict[str, Any] = {
        "/documents": {
            "get": _operation("Lists the open documents.", DocumentsReply),
            "post": adds | {"parameters": [name], "requestBody": file},
        }
    }
    for tool, reply in replies.items():
        content = {"required": True, "content": _content(_request_of(tool))}
        paths[f"/{tool.__name__}"] = {
            "post": _operation(purpose_of(tool), reply) | {"requestBody": content}
        }
    bearer = {"type": "http", "scheme": "bearer", "description": "Token from the address."}
    return {
        "openapi": _OPENAPI,
        "info": {"title": "Leporello", "version": __version__, "summary": _SUMMARY},
        "paths": paths,
        "components": {"schemas": schemas["$defs"], "securitySchemes": {"token": bearer}},
        "security": [{"token": []}],
    }


def _operation(purpose: str, reply: type[BaseModel]) -> dict[str, Any]:
    failure = {"description": "Error message.", "content": _content(ErrorReply)}
    success = {"description": reply.__doc__ or "", "content": _content(reply)}
    summary, _, details = purpose.partition("\n\n")
    responses = {"200": success, "4XX": failure}
    return {"summary": summary, "description": details, "responses": responses}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    reference = {"$ref": _REFERENCES.format(model=model.__name__)}
    return {"application/json": {"schema": reference}}


async def _description(_: Request) -> Response:
    return JSONResponse(openapi())


async def _page(_: Request) -> Response:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    return HTMLResponse(environment.get_template("docs.html.jinja").render(openapi()))
