"""Tests of the cache: an entry is returned exactly as it was stored, or not at all."""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open

from leporello.cache import store as module
from leporello.cache.entry import DamagedEntryError, pack, read
from leporello.cache.store import Cache, CacheEntry
from leporello.core.calls.memory import canonical
from leporello.engine.failures import time_limit

RECIPE: dict[str, Any] = {"stage": {"class": "x.Y", "k": 1}, "text": "ab"}
VALUE: dict[str, Any] = {
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    "starts": np.array([0, 3], dtype=np.uint32),
    "terms": ["one", "zwei", "三"],
    "mean": 0.5,
}
HOUR = 3600


@pytest.fixture
def stored(tmp_path: Path) -> Cache:
    cache = Cache(tmp_path / "cache")
    assert cache.put("index", RECIPE, VALUE)
    return cache


@pytest.fixture(autouse=True)
def _forget_warnings() -> Iterator[None]:
    """Repeats in each test the warnings that are shown once per process."""
    yield
    module._warn_once.cache_clear()


def file_of(cache: Cache) -> Path:
    [entry] = cache.entries()
    return entry.path


def same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray):
        return (
            type(right) is np.ndarray
            and (left.dtype, left.shape) == (right.dtype, right.shape)
            and left.tobytes() == right.tobytes()
        )
    return type(left) is type(right) and repr(left) == repr(right)


def equal(entry: Any, value: dict[str, Any]) -> bool:
    return set(entry) == set(value) and all(same(entry[name], value[name]) for name in value)


TYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="="),
    hnp.unsigned_integer_dtypes(endianness="="),
    hnp.floating_dtypes(endianness="=", sizes=(16, 32, 64)),
)
ARRAYS = hnp.arrays(TYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.dictionaries(NAMES, ARRAYS | ARRAYS.map(np.transpose) | PLAIN, max_size=4))
def test_an_entry_is_returned_as_it_was_stored(tmp_path: Path, value: dict[str, Any]) -> None:
    """Arrays of any plain type and shape, and any JSON, are restored to the last bit."""
    cache = Cache(tmp_path)
    assert cache.put("index", RECIPE, value)
    entry = cache.get("index", RECIPE)
    assert entry is not None
    assert equal(entry, value)
    assert not any(a.flags.writeable for a in entry.values() if isinstance(a, np.ndarray))


@pytest.mark.parametrize(
    "value",
    [
        {"x": (1, 2)}, {"x": {1: "a"}}, {"x": [{"y": {1, 2}}]}, {"x": np.float64(1)}, {"x": b"1"},
        {"x": np.array(["a"])}, {"x": np.array([None])}, {"x": np.array([1j])}, {1: "a"},
        {"x": np.ma.masked_array([1])}, {"x": np.zeros(2, ">f4")}, {1: np.zeros(2)}, [1], None,
        {"__metadata__": np.zeros(2)}, {"\ud800": np.zeros(2)}, {"x": np.array(["2020"], "M8")},
        {"x": np.zeros(2, [("a", "f4")])}, {"x": Path("p")},
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_that_cannot_be_restored_is_not_stored(tmp_path: Path, value: Any) -> None:
    cache = Cache(tmp_path)
    assert cache.put("index", RECIPE, value) is False
    assert list(tmp_path.rglob("*")) == []


def test_another_recipe_or_kind_is_another_entry(stored: Cache) -> None:
    assert stored.get("index", {**RECIPE, "text": "ac"}) is None
    assert stored.get("chunks", RECIPE) is None
    assert stored.get("index", {**RECIPE, "stage": {"class": "x.Y", "k": 1.0}}) is None
    again = stored.get("index", {"text": "ab", "stage": {"k": 1, "class": "x.Y"}})
    assert again is not None
    assert equal(again, VALUE)


def test_a_large_entry_is_mapped(tmp_path: Path) -> None:
    import mmap

    cache, vectors = Cache(tmp_path), np.random.default_rng(0).random((400, 100))
    assert cache.put("index", RECIPE, {"vectors": vectors})
    entry: Any = cache.get("index", RECIPE)
    base = entry["vectors"]
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    assert isinstance(base, mmap.mmap)
    file_of(cache).unlink()
    assert np.array_equal(entry["vectors"], vectors)


def damaged(cache: Cache, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Checks that a damaged entry is reported and removed, and can be stored again."""
    path = file_of(cache)
    path.write_bytes(content)
    caplog.clear()
    assert cache.get("index", RECIPE) is None
    assert str(path) in caplog.text
    assert "damaged" in caplog.text
    assert not path.exists()
    assert cache.put("index", RECIPE, VALUE)


def test_a_truncated_entry_is_noticed(stored: Cache, caplog: pytest.LogCaptureFixture) -> None:
    content = file_of(stored).read_bytes()
    for length in {*range(0, len(content), 17), *range(len(content) - 17, len(content))}:
        damaged(stored, content[:length], caplog)


CONTENT = bytes(pack(canonical(RECIPE), VALUE) or b"")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, len(CONTENT) - 1), change=st.integers(1, 255))
def test_a_changed_byte_is_noticed(tmp_path: Path, place: int, change: int) -> None:
    path = tmp_path / "entry"
    path.write_bytes(CONTENT[:place] + bytes([CONTENT[place] ^ change]) + CONTENT[place + 1 :])
    with pytest.raises(DamagedEntryError):
        read(path, canonical(RECIPE))


def test_a_renamed_entry_is_not_returned(stored: Cache, caplog: pytest.LogCaptureFixture) -> None:
    other_recipe = {**RECIPE, "text": "ac"}
    stored.put("index", other_recipe, {"x": 1})
    file_of_other = next(e.path for e in stored.entries() if recipe_of(e) == other_recipe)
    content = file_of_other.read_bytes()
    file_of_other.unlink()
    damaged(stored, content, caplog)


BUSY = """
import sys, numpy as np
from pathlib import Path
from leporello.cache.store import Cache
cache, number = Cache(Path(sys.argv[1])), int(sys.argv[2])
found = 0
for turn in range(60):
    recipe = {"key": turn % 5}
    value = {"x": np.full(50_000, turn % 5, dtype=np.int32), "y": [turn % 5] * 9}
    assert cache.put("index", recipe, value)
    stored = cache.get("index", {"key": (turn * 3 + number) % 5})
    if stored is not None:
        found += 1
        assert stored["x"].shape == (50_000,)
        assert set(stored["x"].tolist()) == set(stored["y"]) == {(turn * 3 + number) % 5}
assert found > 40, found
"""


def test_processes_share_a_cache(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", BUSY, str(tmp_path), str(number)],
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
        )
        for number in range(2)
    ]  # fmt: skip
    errors = [process.communicate(timeout=180)[1] for process in processes]
    assert errors == ["", ""]
    assert [process.returncode for process in processes] == [0, 0]
    assert len(list(Cache(tmp_path).entries())) == 5
    assert not list(tmp_path.rglob("*.partial"))


FULL = """
import logging, resource, signal, sys, numpy as np
from pathlib import Path
from leporello.cache.store import Cache
logging.basicConfig(format="%(message)s", stream=sys.stdout)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
cache = Cache(Path(sys.argv[1]))
print(*(cache.put("index", {"n": n}, {"x": np.zeros(10_000)}) for n in range(3)))
print(cache.put("index", {"n": 4}, {"x": 1}), cache.get("index", {"n": 4}))
"""


def test_a_full_disk_is_reported_once(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    warning, refused, small = process.stdout.splitlines()
    assert "cannot be written (File too large)" in warning
    assert (refused, small) == ("False False False", "True {'x': 1}")
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_a_read_only_cache_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")
    assert [cache.put("index", {"n": n}, VALUE) for n in range(3)] == [False] * 3
    assert cache.get("index", RECIPE) is None
    assert list(cache.entries()) == [] == cache.remove(cache.surplus(0))
    [warning] = caplog.records
    assert warning.levelno == logging.WARNING
    assert str(cache.root) in warning.message
    assert "cannot be written" in warning.message


@pytest.mark.parametrize("method", ["get", "put"])
def test_a_time_limit_is_not_a_disk_error(
    stored: Cache, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(*_: object, **__: object) -> None:
        threading.Event().wait(5)

    monkeypatch.setattr(Path, "open", wait)
    calls: Any = {
        "get": lambda: stored.get("index", RECIPE),
        "put": lambda: stored.put("x", {}, VALUE),
    }
    with pytest.raises(TimeoutError, match=r"took longer than 0\.05 s"), time_limit(0.05):
        calls[method]()


def test_an_entry_is_a_safetensors_file_with_a_kind_and_a_recipe(stored: Cache) -> None:
    [entry] = stored.entries()
    with safe_open(entry.path, "numpy") as file:
        assert np.array_equal(file.get_tensor("weights"), VALUE["weights"])
    assert (entry.kind, entry.size) == ("index", entry.path.stat().st_size)
    assert recipe_of(entry) == RECIPE
    assert abs(entry.last_use - time.time()) < HOUR


def recipe_of(entry: CacheEntry) -> Any:
    with safe_open(entry.path, "numpy") as file:
        return json.loads(file.metadata()["recipe"])


def filled(root: Path) -> Cache:
    """Returns a cache with ten entries, used at intervals of an hour, and an older model."""
    cache = Cache(root)
    for number in range(10):
        cache.put("index", {"n": number}, {"x": np.zeros(1000)})
    for entry in cache.entries():
        recipe: Any = recipe_of(entry)
        os.utime(entry.path, (time.time() - HOUR * (20 - recipe["n"]),) * 2)
    model = root / "models" / "tiny-0123"
    model.mkdir(parents=True)
    (model / "weights").write_bytes(b"x" * 5000)
    (root / "models" / "tiny-0123.lock").touch()
    os.utime(model, (0, 0))
    return cache


def numbers(cache: Cache) -> list[Any]:
    recipes: list[Any] = [recipe_of(entry) for entry in cache.entries() if entry.kind == "index"]
    return sorted(recipe["n"] for recipe in recipes)


def test_recently_used_entries_are_kept(tmp_path: Path) -> None:
    cache = filled(tmp_path)
    size = next(entry.size for entry in cache.entries() if entry.kind == "index")
    os.utime(next(e.path for e in cache.entries() if recipe_of(e) == {"n": 0}))
    removed = cache.remove(cache.surplus(5000 + 3 * size + size // 2))
    assert numbers(cache) == [0, 8, 9]
    assert [entry.path.exists() for entry in removed] == [False] * 7
    assert sum(entry.size for entry in cache.entries()) <= 5000 + 3 * size + size // 2
    assert cache.remove(cache.surplus(5000 + 3 * size)) == []
    assert [entry.kind for entry in cache.remove(cache.surplus(5000))] == ["index"] * 3
    [model] = cache.entries()
    assert (model.kind, model.size) == ("models", 5000)
    assert cache.remove(cache.surplus(0)) == [model]
    assert not model.path.exists()
    assert list(cache.entries()) == []


def test_partial_files_are_removed_after_an_hour(tmp_path: Path) -> None:
    """Old partial files are removed; recent ones may still be being written."""
    cache = filled(tmp_path)
    folder = next(entry.path for entry in cache.entries() if entry.kind == "index").parent
    partials = [folder / "ab.1-cd.partial", tmp_path / "models" / ".tiny.partial" / "weights"]
    partials[1].parent.mkdir()
    for partial in partials:
        partial.write_bytes(b"x")
    assert cache.remove(cache.surplus(10**9)) == []
    assert all(partial.exists() for partial in partials)
    for path in (partials[0], partials[1].parent):
        os.utime(path, (time.time() - 2 * HOUR,) * 2)
    assert cache.remove(cache.surplus(10**9)) == []
    assert not any(partial.exists() for partial in partials)
    assert len(list(cache.entries())) == 11
