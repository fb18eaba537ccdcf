"""The server of the page: on this machine alone, until it is told to end."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable

from leporello.core.errors import UserError
from leporello.runs.ask import Session

_SECONDS = 2  # that open connections have when it ends


def serve(session: Session, port: int = 0, ready: Callable[[str], None] = print) -> None:
    """Serves a conversation until Ctrl-C or SIGTERM.

    Args:
        session: Conversation about the files that are given.
        port: Port on 127.0.0.1; 0 takes a free one.
        ready: Function that is told the address, with its token, once connections are taken.

    Raises:
        UserError: The port is taken, or may not be used.
        KeyboardInterrupt: It was told to end, and has.
    """
    import uvicorn

    from leporello.serving.access import AccessControl
    from leporello.serving.app import application
    from leporello.serving.documents import OpenDocuments

    try:
        listening = socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise UserError(f"port {port} of 127.0.0.1 cannot be had: {error}") from None
    with listening:
        port, token = listening.getsockname()[1], secrets.token_urlsafe(32)
        app = AccessControl(application(OpenDocuments([session])), token, port)
        config = uvicorn.Config(
            app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False,
            server_header=False, timeout_graceful_shutdown=_SECONDS,
        )  # fmt: skip
        ready(f"http://127.0.0.1:{port}/?token={token}")
        uvicorn.Server(config).run([listening])
