"""Batches of requests, which services answer within a day at half the price.

Each batch is recorded on disk before it is awaited, so that a later process with the same requests
finds it at the service and does not pay again.
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
from leporello.core.files import cache_directory, write_json
from leporello.readers.endpoint.protocols import EndpointPrompt
from leporello.readers.endpoint.requests import Asker
from leporello.readers.endpoint.responses import (
    SUCCESS,
    EndpointReply,
    Outcome,
    ResponseFault,
    fault_of_status,
    outcome_of,
)

if TYPE_CHECKING:
    from aiohttp import FormData

_FIRST_WAIT, _MAX_WAIT, _GROWTH = 1.0, 60.0, 1.5  # seconds between polls
_MAX_REQUESTS = 10_000  # per batch; services allow more, but limit the bytes
_RETENTION = 28 * 86_400  # seconds for which services keep answers
_SKEW = 300  # seconds by which a service's clock may be late
_RESUMES = "the service continues the batch, and the same command finds it again"
_ENDS = ("ended", "completed", "failed", "expired", "cancelled")


@dataclass(frozen=True, slots=True)
class SentBatch:
    """Record of a batch."""

    keys: tuple[str, ...]  # hashes of its requests, which are their ids in the batch
    since: float  # time just before it was sent, in seconds of the epoch
    file: str = ""  # id of the uploaded file of requests at the service, if there is one
    id: str = ""  # id of the batch at the service; empty until it is known


@dataclass(eq=False)
class Batches(Asker):
    """Sends prompts as batches, and waits for them; one call at a time."""

    # Outcomes of this process, so that halving a batch to find a fault does not send it again.
    _outcome_of: dict[str, Outcome] = field(default_factory=dict)

    async def ask(self, bodies: Mapping[EndpointPrompt, bytes]) -> dict[EndpointPrompt, Outcome]:
        """Returns the outcome of each prompt after all are answered; see `Asker`."""
        # Ids that a later process computes from the same requests, whatever their order.
        keys = {prompt: sha256(body).hexdigest() for prompt, body in bodies.items()}
        if self._outcome_of.keys().isdisjoint(keys.values()):
            self._outcome_of.clear()
        unknown = {key: prompt for prompt, key in keys.items() if key not in self._outcome_of}
        sent = await self._sent({key: bodies[p] for key, p in unknown.items()})
        for place, batch in sent:
            outcomes = await self._outcomes(place, batch)
            for key in unknown.keys() & batch.keys:
                outcome = outcomes.get(key, ResponseFault("the batch ended without an answer"))
                self._outcome_of[key] = self.charged(outcome, unknown[key])
        return {prompt: self._outcome_of[key] for prompt, key in keys.items()}

    async def _sent(self, bodies: Mapping[str, bytes]) -> list[tuple[Path, SentBatch]]:
        """Returns the batches with these requests; sends those that are in no batch."""
        folder = cache_directory() / "batches" / sha256(self.client.base_url.encode()).hexdigest()
        folder.mkdir(parents=True, exist_ok=True)
        batches: list[tuple[Path, SentBatch]] = []
        # Locked, so that only one of several processes sends the same requests.
        async with AsyncFileLock(folder / "lock"):
            missing = set(bodies)
            for place in sorted(folder.glob("*.json")):
                batch = _read(place)
                if time.time() - batch.since > _RETENTION:
                    place.unlink()
                elif not missing.isdisjoint(batch.keys) and (
                    sent := await self._identified(place, batch)
                ):
                    batches.append((place, sent))
                    missing.difference_update(batch.keys)
            unsent = [key for key in bodies if key in missing]
            for start in range(0, len(unsent), _MAX_REQUESTS):
                keys = unsent[start : start + _MAX_REQUESTS]
                self.account.check()
                place = folder / f"{sha256(''.join(keys).encode()).hexdigest()[:32]}.json"
                sent = await self._send(place, {key: bodies[key] for key in keys})
                batches.append((place, sent))
        return batches

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
        # Before sending: if this process is killed before it knows the id, the next one finds the
        # batch by its uploaded file, or by time and number of requests. The store alone would not
        # suffice, as it is written only with the answers (decision 44).
        _write(place, sent)
        answer = await self._ask(self.protocol.batches, json.dumps(body).encode())
        return _write(place, replace(sent, id=json.loads(answer)["id"]))

    async def _upload(self, requests: Sequence[tuple[str, Any]]) -> str:
        """Uploads a file with requests, and returns its id at the service."""
        from aiohttp import FormData

        target = {"method": "POST", "url": f"/v1{self.protocol.path}"}
        rows = ({"custom_id": key, "body": request, **target} for key, request in requests)
        form = FormData({"purpose": "batch"})
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        form.add_field("file", lines.encode(), filename="requests.jsonl")
        return str(json.loads(await self._ask("/files", form))["id"])

    async def _identified(self, place: Path, batch: SentBatch) -> SentBatch | None:
        """Returns a batch with its id, if necessary from the service; None if it is not there."""
        if batch.id:
            return batch
        rows = json.loads(await self._ask(f"{self.protocol.batches}?limit=100")).get("data", [])
        if self.protocol.uploads:
            fitting = [row for row in rows if row.get("input_file_id") == batch.file]
        else:
            # Anthropic's batches bear no mark of ours. Two of equal size, sent within five minutes
            # and both cut off, could be confused; their answers have hashes, so the requests are
            # sent again.
            recorded = {_read(path).id for path in place.parent.glob("*.json")}
            fitting = [
                row
                for row in rows
                if sum(row["request_counts"].values()) == len(batch.keys)
                and datetime.fromisoformat(row["created_at"]).timestamp() > batch.since - _SKEW
                and row["id"] not in recorded
            ]
        return _write(place, replace(batch, id=str(fitting[0]["id"]))) if fitting else None

    async def _outcomes(self, place: Path, batch: SentBatch) -> dict[str, Outcome]:
        """Waits for a batch, returns its outcomes, and removes failed requests from its record."""
        url, wait = f"{self.protocol.batches}/{batch.id}", _FIRST_WAIT
        state = json.loads(await self._ask(url))
        while (state.get("processing_status") or state.get("status")) not in _ENDS:
            await asyncio.sleep(wait)
            state, wait = json.loads(await self._ask(url)), min(wait * _GROWTH, _MAX_WAIT)
        if state.get("status") == "failed":
            place.unlink()
            raise UserError(f"the service rejects the batch: {json.dumps(state.get('errors'))}")
        files = filter(None, (state.get("output_file_id"), state.get("error_file_id")))
        uploads = self.protocol.uploads
        paths = [f"/files/{file}/content" for file in files] if uploads else [f"{url}/results"]
        lines = [line for path in paths for line in (await self._ask(path)).split("\n")]
        rows = [json.loads(line) for line in lines if line.strip()]
        outcomes = {str(row["custom_id"]): self._outcome(row) for row in rows}
        answered = [key for key in batch.keys if isinstance(outcomes.get(key), EndpointReply)]
        _write(place, replace(batch, keys=tuple(answered)))  # failed requests may be sent again
        return outcomes

    def _outcome(self, row: Mapping[str, Any]) -> Outcome:
        result = row.get("result") or row.get("response") or {}
        body = result.get("message") or result.get("body")
        if body is None:
            return ResponseFault(f"in a batch: {json.dumps(row)[:400]}")
        status, content = result.get("status_code", 200), json.dumps(body).encode()
        if status < SUCCESS:
            return outcome_of(content, self.protocol)
        return fault_of_status(status, {}, content)

    async def _ask(self, path: str, body: bytes | FormData = b"") -> str:
        """Returns the server's response; only requests without a body are repeated."""
        method, fault = "POST" if body else "GET", ResponseFault("")
        # A repeated POST could send the batch twice, and both would be paid.
        for attempt in range(1 if body else self.retries + 1):
            if attempt:
                await asyncio.sleep(min(_FIRST_WAIT * 2.0**attempt, _MAX_WAIT))
            response = await self.client.request(method, path, self.timeout, body)
            if isinstance(response, bytes):
                return response.decode("utf-8", "replace")
            fault = response
            if not fault.again:
                break
        raise UserError(f"batch: {fault.message}; {_RESUMES}")


def _read(place: Path) -> SentBatch:
    row = json.loads(place.read_bytes())
    return SentBatch(**{**row, "keys": tuple(row["keys"])})


def _write(place: Path, batch: SentBatch) -> SentBatch:
    write_json(place, asdict(batch))
    return batch
