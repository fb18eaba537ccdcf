"""What every actor of a run is given besides its work: variables, paths, sources."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leporello.executors.beside import show_log
from leporello.executors.hands import one_thread
from leporello.executors.on_ray.parcel import Parcel

__all__ = ["Kit"]


@dataclass(frozen=True)
class Kit:
    """What the driver has and an actor may lack.

    Attributes:
        environment: Variables, keys among them.
        paths: Where the driver finds modules; an actor looks there last.
        parcel: Sources that an actor may not find there.
    """

    environment: Mapping[str, str]
    paths: Sequence[str]
    parcel: Parcel

    def put_on(self) -> None:
        """Equips this process, before it imports anything heavy; see `unpack` for the sources."""
        os.environ.update({**one_thread(), **self.environment, **_hidden()})
        sys.path.extend(path for path in self.paths if path not in sys.path)
        sys.stdout = sys.stderr  # what a plug-in prints is no result
        show_log()

    def unpack(self) -> None:
        """Puts the sources where this process imports from."""
        self.parcel.unpack()


def _hidden() -> dict[str, str]:
    """Returns the variable that hides GPUs from an actor that reserves none."""
    import ray

    reserved = ray.get_runtime_context().get_accelerator_ids().get("GPU")
    return {} if reserved else {"CUDA_VISIBLE_DEVICES": ""}
