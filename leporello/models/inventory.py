"""Lists the models on this machine with the names that select them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.core.errors import UserError
from leporello.models.locate import EMBEDDED, locate, size
from leporello.models.naming import NamedModel, local_model, resolve
from leporello.models.servers import SERVERS, running_servers


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that `--model` can select."""

    name: str  # value for `--model`
    reader: str  # name of the default reader class; empty if a pipeline must choose one
    window: int | None  # number of tokens of the input window; None if unknown
    bytes: int | None  # size of its weights; None if unknown
    place: str  # location, or the reason why it is not available


def known_models(folders: Iterable[Path] = ()) -> Iterator[KnownModel]:
    """Yields the models of packages, of the hub's cache, of folders, and of local servers."""
    for name in EMBEDDED:
        yield _package_model(name)
    yield from _hub_models()
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: there is no such folder")
        yield from _folder_models(folder)
    for kind, models in running_servers().items():
        place = SERVERS[kind].base_url
        for model in models or ():
            name = f"{kind}:{model.name}"
            yield KnownModel(name, "Endpoint", model.window, model.size, place)
        if models is None:
            yield KnownModel(f"{kind}:", "", None, None, f"nothing answers at {place}")


def _package_model(name: str) -> KnownModel:
    try:
        place = locate(name)
    except UserError as error:
        return KnownModel(name, "", None, None, str(error).rpartition("; ")[2])
    model = _local_entry(name, resolve(name, ask=False), place)
    return replace(model, place=f"package {EMBEDDED[name].package}")


def _hub_models() -> Iterator[KnownModel]:
    from huggingface_hub.constants import HF_HUB_CACHE

    for folder in sorted(Path(HF_HUB_CACHE).glob("models--*")):
        name = folder.name.removeprefix("models--").replace("--", "/")
        try:
            # Offline: the files in the hub's cache suffice, and there may be dozens of models.
            model = resolve(name, ask=False)
        except UserError:  # the download is incomplete, or the model does not read text
            continue
        weights = sum(file.stat().st_size for file in folder.glob("blobs/*"))
        yield KnownModel(name, _default_reader(model), model.window, weights, str(folder))


def _folder_models(folder: Path) -> Iterator[KnownModel]:
    for place in (folder, *sorted(folder.iterdir())):
        if place.is_dir() or place.suffix == ".gguf":
            try:
                yield _local_entry(str(place), local_model(place), str(place))
            except UserError:
                continue


def _local_entry(name: str, model: NamedModel, place: str) -> KnownModel:
    return KnownModel(name, _default_reader(model), model.window, size(place), place)


def _default_reader(model: NamedModel) -> str:
    return model.readers[0] if model.readers else ""
