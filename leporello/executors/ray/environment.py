"""Environment of the driver that workers on other machines require: variables, paths, files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from leporello.cache.source_code import is_own, sources
from leporello.core.annotations import declared_files, declared_variables
from leporello.core.environment.classes import REMAPPED_PATHS
from leporello.executors.child_process import show_log
from leporello.executors.interface import JobGroupSpec

_PLUG_INS = "leporello_plug_ins"  # folder for the files of plug-ins
# Variables that workers receive in addition to the pipelines' API keys: paths of models and data,
# and credentials. A node may set all other variables differently.
_PREFIXES = ("LEPORELLO_", "HF_", "TRANSFORMERS_", "AWS_", "GOOGLE_", "FSSPEC_")


def travelling_modules(spec: JobGroupSpec, folder: Path) -> list[str]:
    """Returns the folders to send: Leporello's package, and copies of plug-ins' files."""
    package = Path(__file__).parents[2]  # includes the stages, which are links in a checkout
    # Copies of the needed files alone, since Ray sends complete folders.
    plug_ins = folder / _PLUG_INS
    plug_ins.mkdir()
    for file, place in _plug_ins(spec).items():
        (plug_ins / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, plug_ins / place)
    return [str(package), str(plug_ins)]


def _plug_ins(spec: JobGroupSpec) -> dict[str, str]:
    """Returns the target path of each local file that stages depend on, by its path here."""
    places: dict[str, str] = {}
    for cls in {stage.cls for stage in spec.all_specs()}:
        for module, path in sources(cls).files.items():
            if not is_own(module):
                root = _root(module, path)
                for file in (path, *_declared(cls, path.parent)):
                    short = sha256(str(root).encode()).hexdigest()[:8]
                    # A folder per root, since two plug-ins may have files of the same name.
                    places.setdefault(str(file), f"{short}/{file.relative_to(root).as_posix()}")
    return places


def _declared(cls: type, folder: Path) -> Iterator[Path]:
    """Yields the files in a folder that `depends_on` of a class names."""
    for _, path in declared_files(cls):
        files = path.rglob("*") if path.is_dir() else [path]
        inside = (file for file in files if file.is_file() and file.is_relative_to(folder))
        yield from (file for file in inside if ".." not in file.relative_to(folder).parts)


def _root(module: str, path: Path) -> Path:
    """Returns the folder from which a module is imported; for a plug-in the folder of its file."""
    if module.endswith(".py"):
        return path.parent
    return path.parents[module.count(".") + (path.name == "__init__.py")]


@dataclass(frozen=True)
class WorkerEnvironment:
    """Environment of the driver, for workers.

    Attributes:
        variables: Environment variables, including API keys.
        paths: Module paths of the driver; workers search them last.
        plug_ins: Paths of plug-ins' files in the folder that is sent, by their paths here.
    """

    variables: Mapping[str, str]
    paths: tuple[str, ...]
    plug_ins: Mapping[str, str]

    @classmethod
    def of(cls, spec: JobGroupSpec) -> WorkerEnvironment:
        """Returns the part of this process's environment that the batch requires."""
        keys = {name.removeprefix("$") for s in spec.all_specs() for name in s.variables()}
        keys |= {name for s in spec.all_specs() for name in declared_variables(s.cls)}
        variables = {n: v for n, v in os.environ.items() if n.startswith(_PREFIXES) or n in keys}
        return cls(variables, tuple(p or str(Path.cwd()) for p in sys.path), _plug_ins(spec))

    def apply(self) -> None:
        """Sets up this process; must be called before it imports plug-ins."""
        os.environ.update(self.variables)
        for folder in [p / _PLUG_INS for p in map(Path, sys.path) if (p / _PLUG_INS).is_dir()]:
            for path, place in self.plug_ins.items():
                REMAPPED_PATHS[path] = str(folder / place)
                sys.path.append(str(folder / place.partition("/")[0]))
        # Last, so that the packages of this machine win over a folder of the driver's.
        sys.path.extend(path for path in self.paths if path not in sys.path)
        show_log()
