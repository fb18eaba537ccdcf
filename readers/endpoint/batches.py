"""Requests that are sent as one batch, which a service answers within a day at half the price.

What was sent is written down before it is waited for: whoever asks the same after a kill finds the
batch again, at the service, and pays it once.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import AsyncFileLock

from leporello.core.errors import UserError
from leporello.core.files import write_json
from leporello.models.locate import cache_directory
from leporello.readers.endpoint.client import Client
from leporello.readers.endpoint.protocols import EndpointPrompt, ServerProtocol
from leporello.readers.endpoint.requests import PendingRequest, counted
from leporello.readers.endpoint.responses import (
    SUCCESS,
    EndpointReply,
    Outcome,
    ResponseFault,
    fault_of_status,
    outcome_of,
)
from leporello.readers.endpoint.spending import ServerAccount

if TYPE_CHECKING:
    from aiohttp import FormData

_FIRST_WAIT, _MOST_WAIT, _GROWTH = 1.0, 60.0, 1.5  # seconds from one look to the next
_MOST = 10_000  # requests of a batch; services take more, but not more bytes
_KEPT = 28 * 86_400  # seconds for which services keep answers
_SKEW = 300  # seconds by which a service's clock may be behind
_GOES_ON = "the batch goes on without us, and the same command finds it again"
_ENDS = ("ended", "completed", "failed", "expired", "cancelled")


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
    """Sends prompts as batches, and waits for them; one call at a time.

    Attributes:
        client: Client of the server.
        protocol: Protocol of the server.
        timeout: Seconds that each look at the server may take.
        retries: Number of further looks after one that failed.
        account: Account in which every answer is counted.
    """

    client: Client
    protocol: ServerProtocol
    timeout: float
    retries: int
    account: ServerAccount
    # Of this process: what is halved to find a fault must not be sent anew.
    _known: dict[str, Outcome] = field(default_factory=dict)

    async def ask(self, work: PendingRequest) -> dict[EndpointPrompt, Outcome]:
        """Returns the outcome of each prompt, once all are answered.

        Raises:
            UserError: The server refuses the batch, or cannot be reached.
            BudgetSpentError: The budget is spent.
        """
        bodies = {prompt: work.body(prompt) for prompt in work.prompts}
        keys = {prompt: sha256(body).hexdigest() for prompt, body in bodies.items()}
        if self._known.keys().isdisjoint(keys.values()):
            self._known.clear()
        unknown = {keys[p]: p for p in work.prompts if keys[p] not in self._known}
        sent = await self._sent({key: bodies[p] for key, p in unknown.items()}, work)
        for place, batch in sent:
            outcomes = await self._outcomes(place, batch)
            for key in unknown.keys() & batch.keys:
                outcome = outcomes.get(key, ResponseFault("the batch ended without an answer"))
                if isinstance(outcome, EndpointReply):
                    outcome = counted(outcome, unknown[key], work)
                if outcome.usage:
                    self.account.add(outcome.usage)
                self._known[key] = outcome
        return {prompt: self._known[key] for prompt, key in keys.items()}

    async def _sent(
        self, bodies: Mapping[str, bytes], work: PendingRequest
    ) -> list[tuple[Path, SentBatch]]:
        """Returns the batches in which these requests are, those that are sent now included."""
        folder = cache_directory() / "batches" / sha256(self.client.base_url.encode()).hexdigest()
        folder.mkdir(parents=True, exist_ok=True)
        found: list[tuple[Path, SentBatch]] = []
        async with AsyncFileLock(
            folder / "lock"
        ):  # of two processes that ask the same, one sends it
            left = set(bodies)
            for place in sorted(folder.glob("*.json")):
                batch = _read(place)
                if time.time() - batch.since > _KEPT:
                    place.unlink()
                elif not left.isdisjoint(batch.keys) and (sent := await self._found(place, batch)):
                    found.append((place, sent))
                    left.difference_update(batch.keys)
            unsent = [key for key in bodies if key in left]
            for start in range(0, len(unsent), _MOST):
                keys = unsent[start : start + _MOST]
                work.check()
                place = folder / f"{sha256(''.join(keys).encode()).hexdigest()[:32]}.json"
                sent = await self._send(place, {key: bodies[key] for key in keys})
                found.append((place, sent))
        return found

    async def _send(self, place: Path, bodies: Mapping[str, bytes]) -> SentBatch:
        sent = SentBatch(tuple(bodies), time.time())
        requests = [(key, json.loads(request)) for key, request in bodies.items()]
        body: dict[str, Any]
        if self.protocol.uploads:
            sent = replace(sent, file=await self._upload(requests))
            url = f"/v1{self.protocol.path}"
            body = {"input_file_id": sent.file, "completion_window": "24h", "endpoint": url}
        else:
            body = {"requests": [{"custom_id": key, "params": params} for key, params in requests]}
        _write(place, sent)
        answer = await self._ask(self.protocol.batches, json.dumps(body).encode())
        return _write(place, replace(sent, id=json.loads(answer)["id"]))

    async def _upload(self, requests: Sequence[tuple[str, Any]]) -> str:
        """Returns the id of a new file with requests at the service."""
        from aiohttp import FormData

        to = {"method": "POST", "url": f"/v1{self.protocol.path}"}
        rows = ({"custom_id": key, "body": request, **to} for key, request in requests)
        form = FormData({"purpose": "batch"})
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        form.add_field("file", lines.encode(), filename="requests.jsonl")
        return str(json.loads(await self._ask("/files", form))["id"])

    async def _found(self, place: Path, batch: SentBatch) -> SentBatch | None:
        """Returns a batch with its id, if need be the service's; None if it never came there."""
        if batch.id:
            return batch
        rows = json.loads(await self._ask(f"{self.protocol.batches}?limit=100")).get("data", [])
        if self.protocol.uploads:
            fitting = [row for row in rows if row.get("input_file_id") == batch.file]
        else:
            others = {_read(other).id for other in place.parent.glob("*.json")}
            fitting = [
                row
                for row in rows
                if sum(row["request_counts"].values()) == len(batch.keys)
                and datetime.fromisoformat(row["created_at"]).timestamp() > batch.since - _SKEW
                and row["id"] not in others
            ]
        return _write(place, replace(batch, id=str(fitting[0]["id"]))) if fitting else None

    async def _outcomes(self, place: Path, batch: SentBatch) -> dict[str, Outcome]:
        """Waits for a batch; returns its outcomes, and forgets what failed."""
        here, wait = f"{self.protocol.batches}/{batch.id}", _FIRST_WAIT
        told = json.loads(await self._ask(here))
        while (told.get("processing_status") or told.get("status")) not in _ENDS:
            await asyncio.sleep(wait)
            told, wait = json.loads(await self._ask(here)), min(wait * _GROWTH, _MOST_WAIT)
        if told.get("status") == "failed":
            place.unlink()
            raise UserError(f"the service refuses the batch: {json.dumps(told.get('errors'))}")
        files = filter(None, (told.get("output_file_id"), told.get("error_file_id")))
        uploads = self.protocol.uploads
        paths = [f"/files/{file}/content" for file in files] if uploads else [f"{here}/results"]
        lines = [line for path in paths for line in (await self._ask(path)).split("\n")]
        rows = [json.loads(line) for line in lines if line.strip()]
        outcomes = {str(row["custom_id"]): self._outcome(row) for row in rows}
        answered = [key for key in batch.keys if isinstance(outcomes.get(key), EndpointReply)]
        _write(place, replace(batch, keys=tuple(answered)))  # the rest may be sent again
        return outcomes

    def _outcome(self, row: Mapping[str, Any]) -> Outcome:
        given = row.get("result") or row.get("response") or {}
        body = given.get("message") or given.get("body")
        if body is None:
            return ResponseFault(f"in a batch: {json.dumps(row)[:400]}")
        status, content = given.get("status_code", 200), json.dumps(body).encode()
        if status < SUCCESS:
            return outcome_of(content, self.protocol)
        return fault_of_status(status, {}, content)

    async def _ask(self, path: str, body: bytes | FormData = b"") -> str:
        """Returns the server's response; what is sent there is sent once."""
        method, fault = "POST" if body else "GET", ResponseFault("")
        for attempt in range(1 if body else self.retries + 1):
            if attempt:
                await asyncio.sleep(min(_FIRST_WAIT * 2.0**attempt, _MOST_WAIT))
            response = await self.client.request(method, path, self.timeout, body)
            if isinstance(response, bytes):
                return response.decode("utf-8", "replace")
            fault = response
            if not fault.again:
                break
        raise UserError(f"batch: {fault.message}; {_GOES_ON}")


def _read(place: Path) -> SentBatch:
    row = json.loads(place.read_bytes())
    return SentBatch(**{**row, "keys": tuple(row["keys"])})


def _write(place: Path, batch: SentBatch) -> SentBatch:
    write_json(place, asdict(batch))
    return batch
