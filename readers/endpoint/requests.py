"""Asks a server: each request until it is answered or there is no use in asking."""

from __future__ import annotations

import asyncio
import json
import random
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from leporello.core.errors import UserError
from leporello.core.secrets import redact
from leporello.readers.endpoint.client import Client
from leporello.readers.endpoint.responses import (
    EndpointReply,
    Mode,
    ResponseFault,
    Usage,
    fault_of,
    outcome_of,
)
from leporello.readers.endpoint.spending import Ledger
from leporello.readers.endpoint.throttle import Throttle

# Waits grow as 1, 2, 4, … s, drawn anew from nothing up to that: what failed together would
# otherwise come back together.
_FIRST_WAIT = 1.0
_MOST_WAIT = 60.0
_GOES_ON = "the same command goes on where this one stopped"
_REPLIES = 4096  # remembered; some hundred bytes each
_NOT_FOUND, _GLANCE, _NAMES = 404, 10.0, 20
PATHS: Mapping[Mode, str] = {
    "chat": "/chat/completions",
    "completions": "/completions",
    "messages": "/messages",
}


@dataclass(eq=False)
class _QueuedRead:
    """A request under way.

    Attributes:
        answer: Future that is set when it is over.
        wanted: Number of callers that wait for it.
        forbidden: Whether it came to nothing, and waits to learn if others do better.
        task: Task that asks.
    """

    answer: asyncio.Future[EndpointReply | ResponseFault]
    wanted: int = 0
    forbidden: bool = False
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True)
class PendingRequest:
    """Prompts that are asked together.

    Attributes:
        prompts: Prompts, all different.
        body: A function that returns the request for a prompt.
        usage: A function that returns what a prompt and its answer took, where the server does not
            tell.
        check: A function called if any of them must be sent; raises if it must not.
        schema: JSON Schema of the answers; empty for any text.
    """

    prompts: Collection[str]
    body: Callable[[str], bytes]
    usage: Callable[[str, str], Usage]
    check: Callable[[], None]
    schema: str = ""


@dataclass(eq=False)
class Dispatcher:
    """Sends requests and remembers replies: what is equal is sent, and paid, once.

    All of it happens on the client's event loop, whatever threads ask: nothing here is locked.

    Attributes:
        client: Client of the server.
        mode: Form of the requests.
        timeout: Seconds that a request may take in all, however it trickles.
        retries: Number of further attempts after a failure that may pass.
        patience: Seconds for which the server may refuse.
        throttle: Throttle that says when requests may start.
        ledger: Ledger in which all that was answered is written down, if it is no use too.
    """

    client: Client
    mode: Mode
    timeout: float
    retries: int
    patience: float
    throttle: Throttle
    ledger: Ledger
    _pending: dict[bytes, _QueuedRead] = field(default_factory=dict)
    _replies: OrderedDict[bytes, EndpointReply] = field(default_factory=OrderedDict)
    _forbidden: int = 0
    _listing: asyncio.Future[str] | None = None
    _refused_until: float = 0.0  # on the loop's clock, with what was told of it
    _refusal: ResponseFault | None = None

    async def ask(self, work: PendingRequest) -> dict[str, EndpointReply | ResponseFault]:
        """Returns what came of each prompt.

        Raises:
            UserError: What is wrong concerns all prompts; those under way are cancelled.
        """
        keys = {prompt: sha256((work.schema + prompt).encode()).digest() for prompt in work.prompts}
        known: dict[str, EndpointReply | ResponseFault] = {
            prompt: reply for prompt, key in keys.items() if (reply := self._recall(key))
        }
        unknown = {prompt: key for prompt, key in keys.items() if prompt not in known}
        if any(key not in self._pending for key in unknown.values()):
            work.check()
        queued = [self._queue(prompt, key, work) for prompt, key in unknown.items()]
        try:
            # Shielded: who gives up must not cancel what others wait for.
            outcomes = await asyncio.gather(*[asyncio.shield(one.answer) for one in queued])
        finally:
            for key, pending in zip(unknown.values(), queued, strict=True):
                self._let_go(key, pending)
        return known | dict(zip(unknown, outcomes, strict=True))

    async def stop(self, error: Callable[[], Exception]) -> None:
        """Ends all requests; whoever waits for one gets the error."""
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(error())
            if pending.task:
                pending.task.cancel()
        self._pending.clear()

    def _recall(self, key: bytes) -> EndpointReply | None:
        if key in self._replies:
            self._replies.move_to_end(key)
        return self._replies.get(key)

    def _queue(self, prompt: str, key: bytes, work: PendingRequest) -> _QueuedRead:
        pending = self._pending.get(key)
        if pending is None:
            if not self._pending:  # whoever comes after a time has patience of their own
                self.throttle.begin_anew()
            loop = asyncio.get_running_loop()
            pending = self._pending[key] = _QueuedRead(loop.create_future())
            pending.task = loop.create_task(self._answer(prompt, key, work))
        pending.wanted += 1
        return pending

    def _let_go(self, key: bytes, pending: _QueuedRead) -> None:
        """Counts one who waits no longer; what nobody waits for is cancelled."""
        pending.wanted -= 1
        if not pending.wanted and pending.task:
            pending.task.cancel()
            if self._pending.get(key) is pending:
                del self._pending[key]

    async def _answer(self, prompt: str, key: bytes, work: PendingRequest) -> None:
        pending = self._pending[key]
        try:
            outcome = await self._outcome(prompt, work)
            if isinstance(outcome, ResponseFault) and await self._stops(pending, outcome):
                await self.stop(partial(UserError, outcome.message))
                return
        except Exception as error:
            pending.answer.set_exception(error)
        else:
            pending.answer.set_result(outcome)
            if isinstance(outcome, EndpointReply):
                self._replies[key] = outcome
        del self._pending[key]
        while len(self._replies) > _REPLIES:
            self._replies.popitem(last=False)

    async def _stops(self, pending: _QueuedRead, fault: ResponseFault) -> bool:
        """Says whether a fault concerns all requests, for which it may wait for the others."""
        pending.forbidden = fault.stops == "unless answered"
        self._forbidden += pending.forbidden
        while pending.forbidden and not self.ledger.requests:
            others = [read.answer for read in self._pending.values() if not read.forbidden]
            if not others:
                return self._forbidden > 1
            await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        return fault.stops == "always"

    async def _outcome(self, prompt: str, work: PendingRequest) -> EndpointReply | ResponseFault:
        """Asks until there is an answer, or no use in asking."""
        clock = asyncio.get_running_loop().time
        began = clock()
        attempts = failures = 0  # a refusal is none, until this prompt was refused for too long
        while True:
            outcome = await self._attempt(prompt, work)
            if isinstance(outcome, EndpointReply) or not outcome.again:
                return outcome
            attempts += 1
            failures += not outcome.refused or clock() - began > self.patience
            if failures > self.retries:
                return replace(outcome, message=f"{outcome.message}; asked {attempts} times")
            if not outcome.refused:
                doubled = _FIRST_WAIT * 2.0 ** min(failures - 1, 9)  # beyond any float otherwise
                await asyncio.sleep(random.uniform(0.0, min(_MOST_WAIT, doubled)))

    async def _attempt(self, prompt: str, work: PendingRequest) -> EndpointReply | ResponseFault:
        clock = asyncio.get_running_loop().time
        if self._refusal and self._refused_until - clock() > self.patience:
            return self._refusal  # who comes when the others have been stopped would wait as long
        await self.throttle.enter()
        try:
            started = clock()
            outcome = await self._send(work.body(prompt))
            outcome = self._throttled(outcome, started, slowly=clock() - started > self.timeout / 2)
        finally:
            self.throttle.leave()
        # A server may repeat the key that it was sent, in what it complains of or even answers.
        if isinstance(outcome, ResponseFault):
            outcome = replace(outcome, message=redact(outcome.message))
        else:
            outcome = counted(outcome, prompt, work)
        if outcome.usage:
            self.ledger.add(outcome.usage)
        return outcome

    def _throttled(
        self, outcome: EndpointReply | ResponseFault, started: float, *, slowly: bool
    ) -> EndpointReply | ResponseFault:
        """Has all requests wait as the server wants, or the run stop if that is past patience."""
        if isinstance(outcome, EndpointReply) or not outcome.again:
            self.throttle.answered(slowly=slowly)
            return outcome
        silent = wait = outcome.wait or 0.0
        if outcome.refused:
            silent = self.throttle.refused(started, outcome.wait)
        elif outcome.overloaded:
            self.throttle.overloaded()
        self.throttle.rest(wait)
        if silent <= self.patience:
            return outcome
        why = f"it asks to wait {wait:.0f} s" if wait > self.patience else "it says nothing else"
        message = f"{outcome.message}; {why}, and patience is {self.patience:g} s; {_GOES_ON}"
        self._refused_until = asyncio.get_running_loop().time() + wait
        self._refusal = replace(outcome, message=message, again=False, stops="always")
        return self._refusal

    async def _send(self, body: bytes) -> EndpointReply | ResponseFault:
        try:
            response = await self.client.request("POST", PATHS[self.mode], self.timeout, body)
        except Exception as error:
            return fault_of(error, self.client.base_url, self.timeout)
        outcome = outcome_of(response, self.mode)
        if isinstance(outcome, ResponseFault) and response.status == _NOT_FOUND:
            self._listing = self._listing or asyncio.ensure_future(self._models())
            listed = await asyncio.shield(self._listing)  # once, whoever gives up
            return replace(outcome, message=f"{outcome.message}{listed}")
        return outcome

    async def _models(self) -> str:
        """Returns the names of what the server has, for a message."""
        try:
            told = await self.client.request("GET", "/models", min(self.timeout, _GLANCE))
            names = [str(model["id"]) for model in json.loads(told.content)["data"]]
        except Exception:  # it may have any form, or none: then there is nothing to add
            return ""
        shown = ", ".join(names[:_NAMES]) + f" and {len(names) - _NAMES} more" * (
            len(names) > _NAMES
        )
        return f"; it has the models: {shown}" if names else ""


def counted(reply: EndpointReply, prompt: str, work: PendingRequest) -> EndpointReply:
    """Returns a reply without keys, and with what it took, counted where the server tells not."""
    usage = reply.usage or work.usage(prompt, f"{reply.reasoning} {reply.text}".strip())
    if reply.reasoning and usage.reasoning_tokens is None:
        usage = replace(usage, reasoning_tokens=work.usage("", reply.reasoning).output_tokens)
    return EndpointReply(redact(reply.text), usage, redact(reply.reasoning))
