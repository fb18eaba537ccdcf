"""Asks a server: each request until it is answered or there is no use in asking."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from hashlib import sha256

from leporello.core.errors import UserError
from leporello.core.secrets import redact
from leporello.readers.endpoint.client import Client
from leporello.readers.endpoint.protocols import EndpointPrompt, ServerProtocol
from leporello.readers.endpoint.responses import (
    EndpointReply,
    Outcome,
    ResponseFault,
    Usage,
    outcome_of,
)
from leporello.readers.endpoint.spending import ServerAccount
from leporello.readers.endpoint.throttle import Throttle

# Waits grow as 1, 2, 4, … s, drawn anew from nothing up to that: what failed together would
# otherwise come back together.
_FIRST_WAIT = 1.0
_MOST_WAIT = 60.0
_GOES_ON = "the same command goes on where this one stopped"
_REPLIES = 4096  # remembered; some hundred bytes each
_NOT_FOUND, _GLANCE, _NAMES = 404, 10.0, 20


@dataclass(frozen=True)
class PendingRequest:
    """Prompts that are asked together.

    Attributes:
        prompts: Prompts, all different.
        body: A function that returns the request for a prompt.
        usage: A function that returns the usage of a text and its answer, where the server does not
            give it.
        check: A function called if any of them must be sent; raises if it must not.
    """

    prompts: Collection[EndpointPrompt]
    body: Callable[[EndpointPrompt], bytes]
    usage: Callable[[str, str], Usage]
    check: Callable[[], None]


@dataclass(eq=False)
class Dispatcher:
    """Sends requests and remembers replies: equal requests are sent, and paid, once.

    All of it happens on the client's event loop, whatever threads ask: nothing here is locked.

    Attributes:
        client: Client of the server.
        protocol: Protocol of the server.
        timeout: Seconds that a request may take in all, however it trickles.
        retries: Number of further attempts after a failure that may pass.
        patience: Seconds for which the server may refuse.
        throttle: Throttle that says when requests may start.
        account: Account in which every answer is counted, even one that is of no use.
    """

    client: Client
    protocol: ServerProtocol
    timeout: float
    retries: int
    patience: float
    throttle: Throttle
    account: ServerAccount
    # Requests under way, and those that were answered, by hash of the prompt.
    _tasks: OrderedDict[bytes, asyncio.Task[Outcome]] = field(default_factory=OrderedDict)
    _wanted: Counter[bytes] = field(default_factory=Counter)  # callers that wait for each of them
    _forbidden: set[asyncio.Task[Outcome] | None] = field(default_factory=set)
    _listing: asyncio.Future[str] | None = None
    _stop: ResponseFault | None = None  # the fault that concerns every request
    _refused_until: float = 0.0  # on the loop's clock

    async def ask(self, work: PendingRequest) -> dict[EndpointPrompt, Outcome]:
        """Returns the outcome of each prompt.

        Raises:
            UserError: A fault concerns all prompts; those under way are cancelled.
        """
        keys = {prompt: sha256("".join(prompt).encode()).digest() for prompt in work.prompts}
        if not self._tasks.keys() >= {*keys.values()}:
            work.check()
        tasks = {prompt: self._task(prompt, key, work) for prompt, key in keys.items()}
        self._wanted.update(keys.values())
        try:
            # Shielded: a caller that gives up must not cancel what others wait for.
            outcomes = await asyncio.gather(*map(asyncio.shield, tasks.values()))
        finally:
            for prompt, task in tasks.items():
                self._let_go(keys[prompt], task)
        if stop := next((o for o in outcomes if isinstance(o, ResponseFault) and o.stops), None):
            raise UserError(stop.message)
        return dict(zip(tasks, outcomes, strict=True))

    def _task(
        self, prompt: EndpointPrompt, key: bytes, work: PendingRequest
    ) -> asyncio.Task[Outcome]:
        if key not in self._tasks:
            if not self._wanted:  # callers that come later have patience of their own
                self.throttle.begin_anew()
                if self._refused_until - asyncio.get_running_loop().time() <= self.patience:
                    self._stop = None
            self._tasks[key] = asyncio.create_task(self._answer(prompt, key, work))
        self._tasks.move_to_end(key)
        return self._tasks[key]

    def _let_go(self, key: bytes, task: asyncio.Task[Outcome]) -> None:
        """Counts a caller that waits no longer; a request that nobody waits for is cancelled."""
        self._wanted[key] -= 1
        if not self._wanted[key]:
            del self._wanted[key]
            if task.cancel():
                self._forget(key, task)
        while len(self._tasks) > len(self._wanted) + _REPLIES:
            del self._tasks[next(key for key in self._tasks if key not in self._wanted)]

    def _forget(self, key: bytes, task: asyncio.Task[Outcome] | None) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]

    async def _answer(self, prompt: EndpointPrompt, key: bytes, work: PendingRequest) -> Outcome:
        outcome: Outcome | None = None
        try:
            outcome = await self._outcome(prompt, work)
            if isinstance(outcome, ResponseFault) and outcome.stops:
                outcome = await self._stopped(outcome)
        except asyncio.CancelledError:
            if self._stop is None or not self._wanted[key]:
                raise
            return self._stop
        finally:
            if not isinstance(outcome, EndpointReply):
                self._forget(key, asyncio.current_task())
        return outcome

    async def _stopped(self, fault: ResponseFault) -> ResponseFault:
        """Ends all requests for a fault that concerns them, for which it may wait for others."""
        task = asyncio.current_task()
        if fault.stops == "unless answered":
            self._forbidden.add(task)
            while not self._has_answers and (others := self._under_way() - self._forbidden):
                await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
            if self._has_answers or len(self._forbidden) == 1:
                return replace(fault, stops="")
        self._stop = replace(fault, again=False)
        for other in self._under_way() - {task}:
            other.cancel()
        return self._stop

    @property
    def _has_answers(self) -> bool:
        return self.account.ledger.spent.reads > 0

    def _under_way(self) -> set[asyncio.Task[Outcome]]:
        return {task for task in map(self._tasks.get, self._wanted) if task and not task.done()}

    async def _outcome(self, prompt: EndpointPrompt, work: PendingRequest) -> Outcome:
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

    async def _attempt(self, prompt: EndpointPrompt, work: PendingRequest) -> Outcome:
        clock = asyncio.get_running_loop().time
        if self._stop:
            return self._stop
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
            self.account.add(outcome.usage)
        return outcome

    def _throttled(self, outcome: Outcome, started: float, *, slowly: bool) -> Outcome:
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
        return replace(outcome, message=message, again=False, stops="always")

    async def _send(self, body: bytes) -> Outcome:
        response = await self.client.request("POST", self.protocol.path, self.timeout, body)
        if isinstance(response, bytes):
            return outcome_of(response, self.protocol)
        if response.status == _NOT_FOUND:
            self._listing = self._listing or asyncio.ensure_future(self._models())
            listed = await asyncio.shield(self._listing)  # once, whoever gives up
            return replace(response, message=f"{response.message}{listed}")
        return response

    async def _models(self) -> str:
        """Returns the names of what the server has, for a message."""
        response = await self.client.request("GET", "/models", min(self.timeout, _GLANCE))
        if isinstance(response, ResponseFault):
            return ""
        try:
            names = [str(model["id"]) for model in json.loads(response)["data"]]
        except (ValueError, LookupError, TypeError, RecursionError):  # it may have any form
            return ""
        shown = ", ".join(names[:_NAMES]) + f" and {len(names) - _NAMES} more" * (
            len(names) > _NAMES
        )
        return f"; it has the models: {shown}" if names else ""


def counted(reply: EndpointReply, prompt: EndpointPrompt, work: PendingRequest) -> EndpointReply:
    """Returns a reply without keys, and with what it took, counted where the server tells not."""
    usage = reply.usage or work.usage(prompt.text, f"{reply.reasoning} {reply.text}".strip())
    if reply.reasoning and usage.reasoning_tokens is None:
        usage = replace(usage, reasoning_tokens=work.usage("", reply.reasoning).output_tokens)
    return EndpointReply(redact(reply.text), usage, redact(reply.reasoning))
