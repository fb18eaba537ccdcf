"""The models that are on this machine, each with the word that names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.core.errors import UserError
from leporello.models.locate import EMBEDDED, locate, size
from leporello.models.naming import NamedModel, local_model, resolve
from leporello.models.servers import SERVERS, answering


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be named.

    Attributes:
        name: Word that names it, as `--model` takes it.
        reader: Name of the reader class that reads with it; empty if none does by itself.
        window: Number of tokens that it reads at once, as far as that is known.
        bytes: Size of its weights, as far as that is known.
        place: Place where it is, or why it is not.
    """

    name: str
    reader: str
    window: int | None
    bytes: int | None
    place: str


def known_models(folders: Iterable[Path] = ()) -> Iterator[KnownModel]:
    """Yields what comes along, what the hub's cache and folders hold, and what servers here have.

    A folder may be a model, or hold folders and GGUF files that are.

    Raises:
        UserError: A folder that is not there.
    """
    for name in EMBEDDED:
        yield _shipped(name)
    yield from _cached()
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: there is no such folder")
        yield from _in_folder(folder)
    for kind, models in answering().items():
        place = SERVERS[kind].base_url
        for model in models or ():
            name = f"{kind}:{model.name}"
            yield KnownModel(name, "Endpoint", model.window, model.size, place)
        if models is None:
            yield KnownModel(f"{kind}:", "", None, None, f"nothing answers at {place}")


def _shipped(name: str) -> KnownModel:
    try:
        place = locate(name)
    except UserError as error:
        return KnownModel(name, "", None, None, str(error).rpartition("; ")[2])
    found = _known(name, resolve(name, ask=False), place)
    return replace(found, place=f"package {EMBEDDED[name].package}")


def _cached() -> Iterator[KnownModel]:
    from huggingface_hub.constants import HF_HUB_CACHE

    for folder in sorted(Path(HF_HUB_CACHE).glob("models--*")):
        name = folder.name.removeprefix("models--").replace("--", "/")
        try:
            model = resolve(name, ask=False)
        except UserError:  # only a part of it was fetched, or it is no model of texts
            continue
        weights = sum(file.stat().st_size for file in folder.glob("blobs/*"))
        yield KnownModel(name, _reader(model), model.window, weights, str(folder))


def _in_folder(folder: Path) -> Iterator[KnownModel]:
    for place in (folder, *sorted(folder.iterdir())):
        if place.is_dir() or place.suffix == ".gguf":
            try:
                yield _known(str(place), local_model(place), str(place))
            except UserError:
                continue


def _known(name: str, model: NamedModel, place: str) -> KnownModel:
    return KnownModel(name, _reader(model), model.window, size(place), place)


def _reader(model: NamedModel) -> str:
    return model.readers[0] if model.readers else ""
