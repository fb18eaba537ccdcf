"""Contract of every plug-in: its parameters identify it, and its results are repeatable."""

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

from leporello.cache.dependencies import fingerprint
from leporello.core.annotations import fault_of_declarations, is_repeatable
from leporello.core.errors import UserError
from leporello.executors.channel import dump, load

Maker: TypeAlias = Callable[[], Any]


def fail(instance: object, text: str) -> NoReturn:
    """Fails the test with a sentence about a class, and without a traceback of this package."""
    pytest.fail(f"{type(instance).__name__} {text}", pytrace=False)


class PlugInContract:
    """Tests of every kind; a test class inherits the contract of its kind, and sets `make`.

    Attributes:
        make: Class, or function without arguments, that creates the instance to test. To test
            several instances, replace it by a fixture `maker` with params.
        tolerance: Difference that numbers may have between calls: 0, or about 1e-4 for networks,
            since their last digits depend on the other inputs of the batch.
        threads: Number of threads that may call an instance at once; 1 if it needs calls in turn.
    """

    make: ClassVar[Maker]
    tolerance: ClassVar[float] = 0.0
    threads: ClassVar[int] = 3

    @pytest.fixture
    def maker(self) -> Maker:
        """Returns a function that creates a new instance."""
        make: Maker | None = getattr(type(self), "make", None)
        return make or fail(self, "needs a line `make = YourClass`")

    @pytest.fixture
    def inputs(self) -> Any:
        """Returns the inputs of `work`."""
        return None

    @staticmethod
    def work(instance: Any, inputs: Any) -> Any:
        """Returns the results of an instance for the inputs, as values that can be compared."""
        raise NotImplementedError

    def results(
        self,
        instance: Any,
        inputs: Any,
        what: str = "valid input",
        allowed: tuple[type[Exception], ...] = (),
    ) -> Any:
        """Returns the results for copies of the inputs, without memoised values.

        An error that is not allowed fails the test.
        """
        try:
            return type(self).work(instance, copy.deepcopy(inputs))
        except allowed:
            return None
        except Exception as error:  # the author's class may raise anything
            text = f"failed on {what}: {description_of(error)}"
        fail(instance, text)

    def agree(self, instance: object, first: Any, second: Any, when: str) -> None:
        """Fails if two results differ."""
        if not alike(first, second, self.tolerance):
            if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
                first, second = next(
                    pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]
                )
            fail(
                instance,
                f"returned another result {when}: {first!r:.200}, then {second!r:.200};"
                " equal inputs and parameters must give equal results",
            )

    def shares(self, instance: object) -> bool:
        """Returns whether threads share this instance; otherwise each thread has an instance."""
        return instance is not None

    def test_its_declarations_are_valid(self, maker: Maker) -> None:
        """`depends_on` names variables and existing files, `repeatable` is True or False."""
        if fault := fault_of_declarations(type(maker())):
            pytest.fail(fault, pytrace=False)

    def test_its_parameters_are_known(self, maker: Maker) -> None:
        """The cache and a run's signature identify results by the parameters of the class."""
        instance = maker()
        if not is_repeatable(type(instance)):
            pytest.skip("a class that declares repeatable = False has no cache key")
        if (key := fingerprint(instance)) is None:
            fail(
                instance,
                "has no cache key, so its results cannot be cached: make it a"
                " dataclass(frozen=True) at the top of a module, whose fields are plain values,"
                " paths or such classes",
            )
        if key != fingerprint(maker()):
            fail(instance, "has different cache keys for instances with equal parameters")
        for name, changed in variants(instance):
            if fingerprint(changed) == key:
                fail(instance, f"has the same cache key for different values of {name!r}")

    def test_the_same_input_gives_the_same_output_again(self, maker: Maker, inputs: Any) -> None:
        """A second call gives the same results, by the same instance and by a new one."""
        instance = maker()
        expected = self.results(instance, inputs)
        for second, whose in ((instance, "the same instance"), (maker(), "a new instance")):
            results = self.results(second, inputs)
            self.agree(instance, expected, results, f"in a second call, with {whose}")

    def test_threads_get_what_one_thread_gets(self, maker: Maker, inputs: Any) -> None:
        """Threads that are not the main thread call it, `threads` of them at once."""
        instance = maker()
        expected = self.results(instance, inputs)
        with ThreadPoolExecutor(self.threads) as pool:
            stages = [instance if self.shares(instance) else maker() for _ in range(self.threads)]
            for results in pool.map(lambda stage: self.results(stage, inputs), stages):
                self.agree(instance, expected, results, "when several threads called it at once")

    def test_another_process_gets_the_same(self, maker: Maker, inputs: Any) -> None:
        """Workers receive stages as pickles, and have another hash seed."""
        instance = maker()
        here, there = self.results(instance, inputs), elsewhere(type(self).work, maker(), inputs)
        self.agree(instance, here, there, "in another process (does a set or hash set an order?)")


def description_of(error: Exception) -> str:
    """Returns the type and text of an error, and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error!s:.400}{where}"


def alike(first: Any, second: Any, tolerance: float) -> bool:
    """Returns whether two results are equal, up to a difference of their numbers."""
    if isinstance(first, float) and isinstance(second, float):
        return first == second or abs(first - second) <= tolerance
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(alike(*pair, tolerance) for pair in pairs)
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        return all(alike(first[key], second[key], tolerance) for key in first)
    return bool(first == second)


def variants(instance: Any) -> Iterator[tuple[str, Any]]:
    """Yields instances that differ in one parameter, for booleans and numbers."""
    changes: dict[type, Callable[[Any], Any]] = {
        bool: lambda value: not value,
        int: lambda value: value + 1,
        float: lambda value: value / 2 + 0.1,
    }
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        if field.init and type(value) in changes:
            try:
                changed = dataclasses.replace(instance, **{field.name: changes[type(value)](value)})
            except (ValueError, UserError):
                continue  # the value is not valid with the other parameters
            yield field.name, changed


class _TooManyStepsError(BaseException):
    """Stops calls that run too many lines; not an Exception, so that no stage catches it."""


def steps(call: Callable[[], Any], most: float = math.inf) -> int:
    """Returns the number of lines of Python, up to `most`, that a call runs."""
    count = 0

    def trace(_frame: FrameType, _event: str, _argument: object) -> Any:
        nonlocal count
        count += 1
        if count > most:
            raise _TooManyStepsError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(_TooManyStepsError):
            call()
    finally:
        sys.settrace(before)
    return count


@cache
def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def elsewhere(work: Callable[..., Any], instance: Any, inputs: Any) -> Any:
    """Returns the results for the inputs in another process, which all tests share."""
    try:
        return _pool().submit(_work_on, dump((work, instance, inputs))).result()
    except BrokenProcessPool:
        _pool.cache_clear()
        text = "ended the process that called it"
    except Exception as error:  # pickling or the author's class may raise anything
        text = (
            f"cannot be sent to a worker, or fails there ({description_of(error)}): make it a"
            " frozen dataclass with plain fields at the top of a module that can be imported, and"
            " load models on first use"
        )
    fail(instance, text)


def _work_on(data: bytes) -> Any:
    work, instance, inputs = load(data)
    return work(instance, inputs)
