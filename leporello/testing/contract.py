"""What holds for whatever is plugged in: it is known by its parameters, and repeats itself."""

from __future__ import annotations

import copy
import dataclasses
import math
import multiprocessing
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, NoReturn, TypeAlias

import pytest

from leporello.cache.fingerprint import fingerprint
from leporello.core.annotations import fault_of_declarations, is_repeatable
from leporello.core.errors import UserError
from leporello.executors.pickling import dump, load

Maker: TypeAlias = Callable[[], Any]


def fail(made: object, text: str) -> NoReturn:
    """Fails the test with a sentence about a class, and without a traceback of the kit."""
    pytest.fail(f"{type(made).__name__} {text}", pytrace=False)


class PlugInContract:
    """What every kind is tried on; a test class inherits that of its kind, and says `make`.

    Attributes:
        make: Class, or function without arguments, that makes what is tried. A fixture `maker` in
            its place may have params, to try several.
        tolerance: Difference that numbers may have from one call to the next: 0, or about 1e-4
            where a network computes them, whose last digits depend on what else is in the call.
        threads: Number of threads that may call it at once; 1 for what takes calls one by one.
    """

    make: ClassVar[Maker]
    tolerance: ClassVar[float] = 0.0
    threads: ClassVar[int] = 3

    @pytest.fixture
    def maker(self) -> Maker:
        """Returns what makes a new instance."""
        make: Maker | None = getattr(type(self), "make", None)
        return make or fail(self, "needs a line `make = YourClass`")

    @pytest.fixture
    def inputs(self) -> Any:
        """Returns what is worked on."""
        return None

    @staticmethod
    def work(made: Any, inputs: Any) -> Any:
        """Returns all that an instance makes of the inputs, as values that can be compared."""
        raise NotImplementedError

    def worked(
        self,
        made: Any,
        inputs: Any,
        what: str = "sound input",
        allowed: tuple[type[Exception], ...] = (),
    ) -> Any:
        """Works on copies, for which nothing is remembered; an error fails the test."""
        try:
            return type(self).work(made, copy.deepcopy(inputs))
        except allowed:
            return None
        except Exception as error:  # whatever the author's class raises is for the author to see
            told = f"failed on {what}: {told_of(error)}"
        fail(made, told)

    def agree(self, made: object, one: Any, other: Any, when: str) -> None:
        """Fails where two results differ."""
        if not alike(one, other, self.tolerance):
            if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
                one, other = next(
                    pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]
                )
            fail(
                made,
                f"returned something else {when}: {one!r:.200}, then {other!r:.200};"
                " the same input and parameters must give the same",
            )

    def shares(self, made: object) -> bool:
        """Returns whether threads may call this instance at once; else each has its own."""
        return made is not None

    def test_its_declarations_are_valid(self, maker: Maker) -> None:
        """`depends_on` names variables and existing files, `repeatable` is True or False."""
        if fault := fault_of_declarations(type(maker())):
            pytest.fail(fault, pytrace=False)

    def test_its_parameters_are_known(self, maker: Maker) -> None:
        """A cache and a run's signature name a result by the parameters that it was made with."""
        made = maker()
        if not is_repeatable(type(made)):
            pytest.skip("a class that declares repeatable = False has no cache key")
        if (key := fingerprint(made)) is None:
            fail(
                made,
                "cannot be told by its parameters, so nothing of it is kept between runs: make it a"
                " dataclass(frozen=True) at the top of a module, whose fields are plain values,"
                " paths or such classes",
            )
        if key != fingerprint(maker()):
            fail(made, "has another cache key when it is made again with the same parameters")
        for name, changed in variants(made):
            if fingerprint(changed) == key:
                fail(made, f"has one cache key for different values of {name!r}")

    def test_the_same_input_gives_the_same_output_again(self, maker: Maker, inputs: Any) -> None:
        """With the same instance, and with a new one."""
        made = maker()
        first = self.worked(made, inputs)
        for again, whose in ((made, "the same instance"), (maker(), "a new instance")):
            self.agree(made, first, self.worked(again, inputs), f"in a second call, with {whose}")

    def test_threads_get_what_one_thread_gets(self, maker: Maker, inputs: Any) -> None:
        """Which are not the main one, and call it at once if `threads` says so."""
        made = maker()
        alone = self.worked(made, inputs)
        with ThreadPoolExecutor(self.threads) as pool:
            stages = [made if self.shares(made) else maker() for _ in range(self.threads)]
            for got in pool.map(lambda stage: self.worked(stage, inputs), stages):
                self.agree(made, alone, got, "when several threads called it at once")

    def test_another_process_gets_the_same(self, maker: Maker, inputs: Any) -> None:
        """Workers get a stage as a pickle; text is hashed otherwise there."""
        made = maker()
        here, there = self.worked(made, inputs), elsewhere(type(self).work, maker(), inputs)
        self.agree(made, here, there, "in another process (is a set or a hash in its order?)")


def told_of(error: Exception) -> str:
    """Returns an error and the author's line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error!s:.400}{where}"


def alike(one: Any, other: Any, tolerance: float) -> bool:
    """Returns whether results are equal but for a difference of their numbers."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= tolerance
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(alike(*pair, tolerance) for pair in pairs)
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return all(alike(one[key], other[key], tolerance) for key in one)
    return bool(one == other)


def variants(made: Any) -> Iterator[tuple[str, Any]]:
    """Yields an instance with another value for each parameter that has an obvious one."""
    others: dict[type, Callable[[Any], Any]] = {
        bool: lambda value: not value,
        int: lambda value: value + 1,
        float: lambda value: value / 2 + 0.1,
    }
    for field in dataclasses.fields(made):
        value = getattr(made, field.name)
        if field.init and type(value) in others:
            try:
                changed = dataclasses.replace(made, **{field.name: others[type(value)](value)})
            except (ValueError, UserError):
                continue  # not with the other parameters
            yield field.name, changed


class _TooManyStepsError(BaseException):
    """Ends what runs too long; nothing is to catch it."""


def steps(call: Callable[[], Any], most: float = math.inf) -> int:
    """Returns how many lines of Python a call runs: its time, whatever else the machine does.

    Args:
        call: Function that is called.
        most: Number of lines after which it is ended.
    """
    count = 0

    def counted(_frame: FrameType, _event: str, _argument: object) -> Any:
        nonlocal count
        count += 1
        if count > most:
            raise _TooManyStepsError
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        with suppress(_TooManyStepsError):
            call()
    finally:
        sys.settrace(before)
    return count


@cache
def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def elsewhere(work: Callable[..., Any], made: Any, inputs: Any) -> Any:
    """Returns what another process makes of the inputs, one for all tests."""
    try:
        return _pool().submit(_worked, dump((work, made, inputs))).result()
    except BrokenProcessPool:
        _pool.cache_clear()
        told = "ended the process that it worked in"
    except Exception as error:  # whatever pickling, or the author's class there, raises
        told = (
            f"cannot be sent to a worker, or fails there ({told_of(error)}): be a frozen dataclass"
            " with plain fields at the top of a module that can be imported, and load models on"
            " first use"
        )
    fail(made, told)


def _worked(data: bytes) -> Any:
    work, made, inputs = load(data)
    return work(made, inputs)
