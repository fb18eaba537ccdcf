"""Requests to a server, repeated until they are answered or fail permanently."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from leporello.core.errors import UserError
from leporello.core.secrets import redact
from leporello.readers.endpoint.client import Client, Throttle
from leporello.readers.endpoint.protocols import EndpointPrompt, ServerProtocol
from leporello.readers.endpoint.responses import EndpointReply, Outcome, ResponseFault, outcome_of
from leporello.readers.endpoint.spending import ServerAccount, TokenCounts

# The limit of waits grows as 1, 2, 4, … s; each wait is random up to it, so that requests that
# failed together are not repeated together.
_FIRST_WAIT = 1.0
_MAX_WAIT = 60.0
_RESUMES = "run the same command again to resume"
_REPLIES = 4096  # cached replies of some hundred bytes each


@dataclass(eq=False)
class Asker:
    """Sends prompts, one by one or as batches, on the client's event loop, so without locks."""

    client: Client
    protocol: ServerProtocol
    timeout: float  # seconds per request, even if data keep arriving
    retries: int  # after a temporary failure
    account: ServerAccount  # for every answer, even an unusable one
    counts: TokenCounts  # for servers that do not report usage

    async def ask(self, bodies: Mapping[EndpointPrompt, bytes]) -> dict[EndpointPrompt, Outcome]:
        """Returns the outcome of each prompt; raises UserError for a fault of all of them."""
        raise NotImplementedError

    def charged(self, outcome: Outcome, prompt: EndpointPrompt) -> Outcome:
        """Charges an outcome; returns it without keys and, if it is an answer, with its usage."""
        # A server may repeat the key in an error message, or even in an answer.
        if isinstance(outcome, ResponseFault):
            outcome = replace(outcome, message=redact(outcome.message))
        else:
            text, reasoning = outcome.text, outcome.reasoning
            usage = outcome.usage or self.counts.usage(prompt.text, f"{reasoning} {text}".strip())
            if reasoning and usage.reasoning_tokens is None:
                usage = replace(usage, reasoning_tokens=self.counts.count([reasoning])[0])
            outcome = EndpointReply(redact(text), usage, redact(reasoning))
        if outcome.usage:
            self.account.add(outcome.usage)
        return outcome


@dataclass(eq=False)
class Dispatcher(Asker):
    """Sends each prompt, and caches replies, so that equal requests are sent and paid once."""

    patience: float  # seconds for which the server may answer only 429
    throttle: Throttle
    # Pending and answered requests, by hash of the prompt.
    _tasks: OrderedDict[bytes, asyncio.Task[Outcome]] = field(default_factory=OrderedDict)
    _wanted: Counter[bytes] = field(default_factory=Counter)  # number of callers that wait
    _stop: ResponseFault | None = None  # the fault that concerns every request
    _refused_until: float = 0.0  # on the loop's clock

    async def ask(self, bodies: Mapping[EndpointPrompt, bytes]) -> dict[EndpointPrompt, Outcome]:
        """Returns the outcome of each prompt; see `Asker`."""
        keys = {prompt: sha256("".join(prompt).encode()).digest() for prompt in bodies}
        # Only before a call: answers that were paid for would be lost if it stopped one.
        if not self._tasks.keys() >= {*keys.values()}:
            self.account.check()
        tasks = {p: self._task(p, key, bodies[p]) for p, key in keys.items()}
        self._wanted.update(keys.values())
        try:
            # Shielded, since other callers may wait for the same request.
            outcomes = await asyncio.gather(*map(asyncio.shield, tasks.values()))
        finally:
            for prompt, task in tasks.items():
                self._release(keys[prompt], task)
        if stop := next((o for o in outcomes if isinstance(o, ResponseFault) and o.stops), None):
            raise UserError(stop.message)
        return dict(zip(tasks, outcomes, strict=True))

    def _task(self, prompt: EndpointPrompt, key: bytes, body: bytes) -> asyncio.Task[Outcome]:
        if key not in self._tasks:
            if not self._wanted:  # the patience of later callers starts again
                self.throttle.reset_refusals()
                if self._refused_until - asyncio.get_running_loop().time() <= self.patience:
                    self._stop = None
            self._tasks[key] = asyncio.create_task(self._answer(prompt, key, body))
        self._tasks.move_to_end(key)
        return self._tasks[key]

    def _release(self, key: bytes, task: asyncio.Task[Outcome]) -> None:
        """Removes a caller from a request, and cancels the request if no caller waits for it."""
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

    async def _answer(self, prompt: EndpointPrompt, key: bytes, body: bytes) -> Outcome:
        outcome: Outcome | None = None
        try:
            outcome = await self._outcome(prompt, body)
            if isinstance(outcome, ResponseFault) and outcome.stops:
                outcome = self._stop = replace(outcome, again=False)
                for task in map(self._tasks.get, self._wanted):
                    if task and task is not asyncio.current_task():
                        task.cancel()
        except asyncio.CancelledError:
            if self._stop is None or not self._wanted[key]:
                raise
            return self._stop
        finally:
            if not isinstance(outcome, EndpointReply):
                self._forget(key, asyncio.current_task())
        return outcome

    async def _outcome(self, prompt: EndpointPrompt, body: bytes) -> Outcome:
        """Repeats a request until it is answered or fails permanently."""
        clock = asyncio.get_running_loop().time
        attempts = failures = 0
        refused_since = math.inf  # without the time in the queue before
        while True:
            outcome = self.charged(await self._attempt(body), prompt)
            if isinstance(outcome, EndpointReply) or not outcome.again:
                return outcome
            attempts += 1
            if outcome.refused:  # counts as a failure only after the patience
                refused_since = min(refused_since, clock())
            failures += not outcome.refused or clock() - refused_since > self.patience
            if failures > self.retries:
                return replace(outcome, message=f"{outcome.message}; asked {attempts} times")
            if not outcome.refused:
                doubled = _FIRST_WAIT * 2.0 ** min(failures - 1, 9)  # more would overflow
                await asyncio.sleep(random.uniform(0.0, min(_MAX_WAIT, doubled)))

    async def _attempt(self, body: bytes) -> Outcome:
        clock = asyncio.get_running_loop().time
        if self._stop:
            return self._stop
        await self.throttle.enter()
        try:
            started = clock()
            outcome = await self._send(body)
            # More requests in parallel would soon exceed the time limit, of which half is used.
            return self._throttled(outcome, started, slowly=clock() - started > self.timeout / 2)
        finally:
            self.throttle.leave()

    def _throttled(self, outcome: Outcome, started: float, *, slowly: bool) -> Outcome:
        """Delays all requests as the server asks, or stops the run if that exceeds patience."""
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
        why = f"it asks to wait {wait:.0f} s" if wait > self.patience else "it only answers this"
        message = f"{outcome.message}; {why}, and patience is {self.patience:g} s; {_RESUMES}"
        self._refused_until = asyncio.get_running_loop().time() + wait
        return replace(outcome, message=message, again=False, stops=True)

    async def _send(self, body: bytes) -> Outcome:
        response = await self.client.request("POST", self.protocol.path, self.timeout, body)
        return outcome_of(response, self.protocol) if isinstance(response, bytes) else response
