"""Requests that are sent as one batch, which a service answers within a day at half the price.

What was sent is written down before it is waited for: whoever asks the same after a kill finds the
batch again, at the service, and pays it once.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock

from leporello.core.errors import UserError
from leporello.core.files import write_json
from leporello.models.locate import cache_directory
from leporello.readers.endpoint.client import Client
from leporello.readers.endpoint.requests import PATHS, PendingRequest, counted
from leporello.readers.endpoint.responses import (
    EndpointReply,
    Mode,
    Response,
    ResponseFault,
    fault_of,
    fault_of_status,
    outcome_of,
)
from leporello.readers.endpoint.spending import Ledger

_FIRST_WAIT, _MOST_WAIT, _GROWTH = 1.0, 60.0, 1.5  # seconds from one look to the next
_MOST = 10_000  # requests of a batch; services take more, but not more bytes
_KEPT = 28 * 86_400  # seconds for which services keep answers
_SUCCESS = 300  # HTTP's statuses below
_SKEW = 300  # seconds by which a service's clock may be behind
_GOES_ON = "the batch goes on without us, and the same command finds it again"
_ENDS = ("ended", "completed", "failed", "expired", "cancelled")
_FOLDERS: Mapping[Mode, str] = {"chat": "/batches", "messages": "/messages/batches"}


@dataclass(frozen=True, slots=True)
class SentBatch:
    """What is written down of a batch.

    Attributes:
        keys: Hashes of its requests, each the request's id in the batch.
        since: Time at which it was about to be sent, in seconds of the epoch.
        file: Id of the file of requests at the service, where one is sent first.
        id: The batch's id at the service; empty until it is known.
    """

    keys: tuple[str, ...]
    since: float
    file: str = ""
    id: str = ""


@dataclass(eq=False)
class Batches:
    """Sends prompts as batches, and waits for them; one thread at a time.

    Attributes:
        client: Client of the server.
        mode: Form of the requests.
        timeout: Seconds that each look at the server may take.
        retries: Number of further looks after one that failed.
        ledger: Ledger in which what was answered is written down.
    """

    client: Client
    mode: Mode
    timeout: float
    retries: int
    ledger: Ledger
    # Of this process: what is halved to find a fault must not be sent anew.
    _known: dict[str, EndpointReply | ResponseFault] = field(default_factory=dict)
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def ask(self, work: PendingRequest) -> dict[str, EndpointReply | ResponseFault]:
        """Returns what came of each prompt, once all are answered.

        Raises:
            UserError: The server refuses the batch, or cannot be reached.
            BudgetSpentError: The budget is spent.
        """
        self._cancelled.clear()
        bodies = {prompt: work.body(prompt) for prompt in work.prompts}
        keys = {prompt: sha256(body).hexdigest() for prompt, body in bodies.items()}
        if self._known.keys().isdisjoint(keys.values()):
            self._known.clear()
        unknown = {keys[p]: p for p in work.prompts if keys[p] not in self._known}
        for place, batch in self._sent({key: bodies[p] for key, p in unknown.items()}, work):
            outcomes = self._outcomes(place, batch)
            for key in unknown.keys() & batch.keys:
                outcome = outcomes.get(key, ResponseFault("the batch ended without an answer"))
                if isinstance(outcome, EndpointReply):
                    outcome = counted(outcome, unknown[key], work)
                if outcome.usage:
                    self.ledger.add(outcome.usage)
                self._known[key] = outcome
        return {prompt: self._known[key] for prompt, key in keys.items()}

    def cancel(self) -> None:
        """Ends the waiting; batches go on."""
        self._cancelled.set()

    def _sent(
        self, bodies: Mapping[str, bytes], work: PendingRequest
    ) -> Iterator[tuple[Path, SentBatch]]:
        """Yields the batches in which these requests are, those that are sent now included."""
        folder = cache_directory() / "batches" / sha256(self.client.base_url.encode()).hexdigest()
        folder.mkdir(parents=True, exist_ok=True)
        found: list[tuple[Path, SentBatch]] = []
        with FileLock(folder / "lock"):  # of two processes that ask the same, one sends it
            left = set(bodies)
            for place in sorted(folder.glob("*.json")):
                batch = _read(place)
                if time.time() - batch.since > _KEPT:
                    place.unlink()
                elif not left.isdisjoint(batch.keys) and (sent := self._found(place, batch)):
                    found.append((place, sent))
                    left.difference_update(batch.keys)
            unsent = [key for key in bodies if key in left]
            for start in range(0, len(unsent), _MOST):
                keys = unsent[start : start + _MOST]
                work.check()
                place = folder / f"{sha256(''.join(keys).encode()).hexdigest()[:32]}.json"
                found.append((place, self._send(place, {key: bodies[key] for key in keys})))
        yield from found

    def _send(self, place: Path, bodies: Mapping[str, bytes]) -> SentBatch:
        sent = SentBatch(tuple(bodies), time.time())
        requests = [(key, json.loads(request)) for key, request in bodies.items()]
        body: dict[str, Any]
        if self.mode == "messages":
            _write(place, sent)
            rows = [{"custom_id": key, "params": request} for key, request in requests]
            body = {"requests": rows}
        else:
            to = {"method": "POST", "url": f"/v1{PATHS[self.mode]}"}
            rows = [{"custom_id": key, "body": request, **to} for key, request in requests]
            lines = "".join(f"{json.dumps(row)}\n" for row in rows)
            form = {"purpose": b"batch", "file": lines.encode()}
            sent = replace(sent, file=json.loads(self._ask("/files", form))["id"])
            _write(place, sent)
            body = {"input_file_id": sent.file, "completion_window": "24h", "endpoint": to["url"]}
        told = json.loads(self._ask(_FOLDERS[self.mode], json.dumps(body).encode()))
        return _write(place, replace(sent, id=told["id"]))

    def _found(self, place: Path, batch: SentBatch) -> SentBatch | None:
        """Returns a batch with its id, if need be the service's; None if it never came there."""
        if batch.id:
            return batch
        rows = json.loads(self._ask(f"{_FOLDERS[self.mode]}?limit=100")).get("data", [])
        if self.mode == "messages":
            others = {_read(other).id for other in place.parent.glob("*.json")}
            fitting = [
                row
                for row in rows
                if sum(row["request_counts"].values()) == len(batch.keys)
                and datetime.fromisoformat(row["created_at"]).timestamp() > batch.since - _SKEW
                and row["id"] not in others
            ]
        else:
            fitting = [row for row in rows if row.get("input_file_id") == batch.file]
        return _write(place, replace(batch, id=str(fitting[0]["id"]))) if fitting else None

    def _outcomes(self, place: Path, batch: SentBatch) -> dict[str, EndpointReply | ResponseFault]:
        """Waits for a batch; returns what came of its requests, and forgets what failed."""
        here, wait, told = f"{_FOLDERS[self.mode]}/{batch.id}", _FIRST_WAIT, dict[str, Any]()
        while (told.get("processing_status") or told.get("status")) not in _ENDS:
            if told and self._cancelled.wait(wait):
                raise CancelledError
            told, wait = json.loads(self._ask(here)), min(wait * _GROWTH, _MOST_WAIT)
        if told.get("status") == "failed":
            place.unlink()
            raise UserError(f"the service refuses the batch: {json.dumps(told.get('errors'))}")
        files = filter(None, (told.get("output_file_id"), told.get("error_file_id")))
        paths = [f"/files/{file}/content" for file in files]
        if self.mode == "messages":
            paths = [f"{here}/results"]
        lines = (line for path in paths for line in self._ask(path).split("\n"))
        rows = [json.loads(line) for line in lines if line.strip()]
        outcomes = {str(row["custom_id"]): self._outcome(row) for row in rows}
        answered = [key for key in batch.keys if isinstance(outcomes.get(key), EndpointReply)]
        _write(place, replace(batch, keys=tuple(answered)))  # the rest may be sent again
        return outcomes

    def _outcome(self, row: Mapping[str, Any]) -> EndpointReply | ResponseFault:
        given = row.get("result") or row.get("response") or {}
        body = given.get("message") or given.get("body")
        if body is None:
            return ResponseFault(f"in a batch: {json.dumps(row)[:400]}")
        response = Response(given.get("status_code", 200), {}, json.dumps(body).encode())
        return outcome_of(response, self.mode)

    def _ask(self, path: str, body: bytes | Mapping[str, bytes] = b"") -> str:
        """Returns what the server says; what is sent there is sent once."""
        for attempt in range(1 if body else self.retries + 1):
            if attempt and self._cancelled.wait(min(_FIRST_WAIT * 2.0**attempt, _MOST_WAIT)):
                raise CancelledError
            try:
                method = "POST" if body else "GET"
                response = self.client.run(self.client.request(method, path, self.timeout, body))
            except Exception as error:
                fault = fault_of(error, self.client.base_url, self.timeout)
            else:
                if response.status < _SUCCESS:
                    return response.content.decode("utf-8", "replace")
                fault = fault_of_status(response)
            if not fault.again:
                break
        raise UserError(f"batch: {fault.message}; {_GOES_ON}")


def _read(place: Path) -> SentBatch:
    row = json.loads(place.read_bytes())
    return SentBatch(**{**row, "keys": tuple(row["keys"])})


def _write(place: Path, batch: SentBatch) -> SentBatch:
    write_json(place, {name: getattr(batch, name) for name in SentBatch.__slots__})
    return batch
