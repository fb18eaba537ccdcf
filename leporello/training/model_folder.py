"""The folder that a training leaves: free before it begins, and written whole or not at all."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from leporello.core.errors import UserError
from leporello.training.model_card import RECORD


def check_free(path: Path, *, update: bool) -> None:
    """Refuses a directory that holds something; another training may be replaced if told to."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    made_here = (path / RECORD).exists()
    if not (update and made_here):
        advice = "--update replaces it" if made_here else "it was not made by train"
        raise UserError(f"{path} is there already ({advice}); --out names another place")


@contextmanager
def written(path: Path) -> Generator[Path]:
    """Gives a directory to write in, which takes its place only when all of it is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as temporary:
        folder = Path(temporary) / "made"
        folder.mkdir()
        yield folder
        if path.exists():
            path.rename(Path(temporary) / "replaced")
        folder.rename(path)
