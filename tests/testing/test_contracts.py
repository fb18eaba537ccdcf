"""The contracts fail broken plug-ins, with messages that name the fix."""

import copy
from pathlib import Path
from typing import Any

import pytest
from broken_plug_ins import (
    Careless,
    Firsts,
    Leaks,
    Remembers,
    Scattered,
    Sets,
    Thawed,
    Undeclared,
    Words,
)  # fmt: skip

from leporello import testing as kit

CHUNKER, RETRIEVER, READER = kit.ChunkerContract, kit.RetrieverContract, kit.ReaderContract
BROKEN = (
    (CHUNKER, Thawed(), "parameters_are_known", r"dataclass\(frozen=True\)"),
    (CHUNKER, Undeclared(), "declarations", "/no-such.txt does not exist"),
    (CHUNKER, Words("backwards"), "spans_are_in_order", "spans by their starts, each once"),
    (CHUNKER, Words("quadratic"), "grows_with_the_length", "find the loop within a loop"),
    (CHUNKER, Words("emoji"), "any_text", r"odd text \(byte order marks\), which is valid input"),
    (CHUNKER, Words("random"), "same_input", "another result in a second call"),
    (CHUNKER, Words("thread"), "threads_get", "failed on valid input: AssertionError"),
    (CHUNKER, Words("process"), "another_process", "cannot be sent to a worker, or fails there"),
    (CHUNKER, Words("exit"), "another_process", "ended the process that called it"),
    (RETRIEVER, Firsts(3, "company"), "alone_as_among", "when each example was alone"),
    (RETRIEVER, Firsts(3, "order"), "best_first", "must return hits best first"),
    (RETRIEVER, Firsts(3), "search_only", "index that depends on 'k'"),
    (READER, Leaks(), "in_any_company", "remove `depends_on_batch = False`"),
    (READER, Leaks(), "number_of_tokens", "must count the tokens of each text"),
    (kit.CombinerContract, Remembers(), "killed_run", "another result in a run that was killed"),
    (kit.LoaderContract, Careless(), "spans_lie", "which is outside its text"),
    (kit.LoaderContract, Careless(), "no_such_file", "raise leporello.core.errors.UserError"),
    (kit.TaskContract, Scattered(), "parameters_are_known", "must return a fingerprint"),
    (kit.TaskContract, Scattered(), "stand_together", "one after the other with one Document"),
    (kit.MetricContract, Sets(), "files_hold", "Object of type set is not JSON"),
)


@pytest.mark.parametrize(
    ("contract", "plug_in", "name", "message"), BROKEN, ids=[f"{b[1]}-{b[2]}" for b in BROKEN]
)
def test_a_broken_plug_in_fails_with_the_fix(
    contract: Any, plug_in: Any, name: str, message: str, tmp_path: Path
) -> None:
    [method] = [key for key in dir(contract) if key.startswith("test_") and name in key]
    small = type("Small", (contract,), {"huge": 4_000})()
    test = getattr(small, method)
    names = test.__code__.co_varnames[1 : test.__code__.co_argcount]
    inputs: Any = getattr(small, "inputs_of", lambda _: None)(getattr(small, "cases", list)())
    if contract is kit.LoaderContract:
        inputs = [tmp_path / "a.txt"]
        inputs[0].write_bytes(b"text")
    if contract is kit.MetricContract:
        inputs = [("a", example) for example in contract.examples]
    fixtures = {"maker": lambda: copy.copy(plug_in), "inputs": inputs, "tmp_path": tmp_path}
    with pytest.raises(pytest.fail.Exception, match=message):
        test(**{name: fixtures[name] for name in names})
