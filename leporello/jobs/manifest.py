"""Records of a run: signatures of jobs, the manifest, and the resolved config.

A signature contains all inputs that determine the results, as JSON that can be compared.
"""

import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from leporello.cache.dependencies import (
    Dependencies,
    dependencies,
    files_of,
    installed_version,
    signature_of,
)
from leporello.config import PipelineSpec, Spec, TaskSpec
from leporello.config.metrics import metrics_of, specs_of
from leporello.core import __version__
from leporello.core.errors import UserError
from leporello.core.files import write_json
from leporello.core.protocols import MetricEntry
from leporello.core.records import JSON
from leporello.core.yaml.scalars import write_yaml
from leporello.engine.database import FORM
from leporello.jobs.directory import RunDirectory
from leporello.metrics import METRICS, Metric

# For the reader of a run; the signature lists the versions that results depend on.
_LIBRARIES = (
    "faiss-cpu", "numpy", "scikit-learn", "sentence-transformers", "skops", "tokenizers", "torch",
    "transformers",
)  # fmt: skip


def write_manifest(
    directory: RunDirectory, jobs: Sequence[Mapping[str, Any]], limits: Mapping[str, JSON]
) -> None:
    """Writes manifest.json and run.yaml; keeps jobs and sizes of earlier runs in the directory."""
    new = {(job["pipeline"], job["task"]) for job in jobs}
    rows = [*(row for job, row in directory.rows().items() if job not in new), *jobs]
    manifest: dict[str, Any] = {
        **versions(),
        "stores": FORM,
        "limits": dict(limits),
        "sizes": directory.sizes(),
        "command": sys.argv,
        "jobs": rows,
    }
    resolved = {
        "default": {"pipeline": rows[0]["pipeline"], "task": rows[0]["task"]},
        "pipelines": {row["pipeline"]: row["signature"]["pipeline"] for row in rows},
        "tasks": {row["task"]: row["signature"]["task"] for row in rows},
    }
    write_json(directory.manifest, manifest)
    write_yaml(directory.config, resolved)


@cache
def versions() -> Mapping[str, JSON]:
    """Returns the versions of Leporello, Python, the platform and libraries in this process."""
    return {
        "leporello": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: installed_version(name) or "not installed" for name in _LIBRARIES},
        "git": _git_revision(),
    }


def _git_revision() -> str:
    """Returns the git revision of Leporello's source; empty unless it is a checkout."""
    checkout = Path(__file__).parents[2]
    if not (checkout / ".git").exists():  # installed, perhaps inside a repository of the user
        return ""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- fixed arguments
    except OSError:  # git is not installed
        return ""
    return process.stdout.strip()


def job_signature(
    pipeline: PipelineSpec, task: TaskSpec, data: str, metrics: Sequence[MetricEntry] = ()
) -> dict[str, JSON]:
    """Returns the inputs that determine results; `data` is the fingerprint of the task's data."""
    stages = (row for stage in pipeline.stages.items() for row in _depends(pipeline, *stage))
    # `data` covers the content of a task's files.
    sources = [(spec.name, dependencies(spec.cls, {})) for spec in task.spec.all_specs()]
    sources += [(s.name, dependencies(s.cls, s.arguments())) for s in specs_of(metrics)]
    return {
        "pipeline": pipeline.resolved(),
        "task": task.resolved(),
        "data": data,
        **signature_of([*stages, *sources]),
    }


def readers_of(pipeline: Mapping[str, Any]) -> str:
    """Returns class and model of a pipeline's readers, such as `Seq2Seq google-t5/t5-base`."""
    roles = pipeline.get("readers", {})
    names = [_reader(pipeline["reader"]), *(f"{role}: {_reader(roles[role])}" for role in roles)]
    return ", ".join(names)


def _reader(spec: Mapping[str, Any]) -> str:
    inner = spec
    while "model" not in inner and isinstance(inner.get("reader"), Mapping):
        inner = inner["reader"]
    model = str(inner.get("model") or "")
    name = Path(model).name if Path(model).is_absolute() else model
    return f"{Path(inner['class']).name} {name}".rstrip()  # a plug-in's class has its file's path


def metrics_of_run(signature: Mapping[str, Any], names: Iterable[str]) -> dict[str, Metric]:
    """Returns metrics by name, with the parameters in the signature of a run's job."""
    wanted = [*names]
    entries = signature["task"].get("metrics", [])
    unneeded = METRICS.keys() - set(wanted)  # their libraries may not be installed
    metrics = metrics_of([e for e in entries if not (isinstance(e, str) and e in unneeded)])
    return {n: metrics[n] if n in metrics else metrics_of([n])[n] for n in wanted}


def named_files(pipeline: PipelineSpec) -> dict[str, str]:
    """Returns hashes of the files that parameters of a pipeline's stages name."""
    return files_of([*spec.arguments().values()] for spec in pipeline.all_specs())


def _depends(pipeline: PipelineSpec, key: str, stage: Spec) -> Iterator[tuple[str, Dependencies]]:
    for spec in stage.all_specs():
        try:
            yield spec.name, dependencies(spec.cls, spec.arguments())
        except UserError as error:
            raise UserError(f"{pipeline.name}.{key}: {error}") from None
