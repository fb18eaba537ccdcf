"""Clocks and sources of randomness that plug-in code names: what it makes is not kept.

They raise no event, so the source is read for them: that of the class and of the local modules
which it imports. `time.monotonic` and `time.perf_counter` measure and count for nothing here.
"""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator, Mapping
from functools import cache

from leporello.cache.source_code import is_own, sources

_log = logging.getLogger("leporello")
_CLOCKS = (
    "time.time", "time.time_ns", "datetime.datetime.now", "datetime.datetime.utcnow",
    "datetime.datetime.today", "datetime.date.today", "uuid.uuid1", "uuid.uuid4", "os.urandom",
    "os.getrandom", "random.SystemRandom",
)  # fmt: skip
# Clocks and generators if they are given fewer values than these.
_WITHOUT: Mapping[str, int] = {
    "time.ctime": 1,
    "time.gmtime": 1,
    "time.localtime": 1,
    "time.strftime": 2,
    "random.Random": 1,
    "numpy.random.default_rng": 1,
    "numpy.random.RandomState": 1,
}
_SHARED = ("random.", "numpy.random.", "secrets.")  # functions on a state of the whole process
_STATELESS = ("Generator", "SeedSequence", "PCG64", "MT19937", "Philox", "SFC64", "compare_digest")


@cache
def clock_of(cls: type) -> str:
    """Returns the first clock or randomness that a plug-in's source names, and where; or nothing.

    It is told once. Nothing also of a class that says `repeatable: ClassVar[bool] = True`.
    """
    if is_own(cls.__module__) or getattr(cls, "repeatable", False) is True:
        return ""
    for module, path in sources(cls).files.items():
        if path.suffix == ".py" and not is_own(module):
            try:
                tree = ast.parse(path.read_bytes())
            except (OSError, SyntaxError, ValueError):
                continue
            for line, name in _asked(tree):
                where = f"{name} in line {line} of {path.name}"
                _log.warning(
                    "what %s makes is not kept: it asks %s, and does not say repeatable = True",
                    cls.__qualname__,
                    where,
                )
                return where
    return ""


def _asked(tree: ast.AST) -> Iterator[tuple[int, str]]:
    known = dict(_imported(tree))
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name, call = _dotted(node, known), called.get(id(node))
            given = len(call.args) + len(call.keywords) if call else 99
            if name in _CLOCKS or given < _WITHOUT.get(name, 0) or _is_shared(name):
                yield node.lineno, name


def _is_shared(name: str) -> bool:
    last = name.rpartition(".")[2]
    return (
        name.startswith(_SHARED)
        and name.removesuffix(last) in _SHARED
        and name not in _WITHOUT
        and last not in _STATELESS
    )


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yields what imports call by which name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield alias.asname or top, alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.expr, known: Mapping[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value, known)
        return f"{before}.{node.attr}" if before else ""
    return known.get(node.id, "") if isinstance(node, ast.Name) else ""
