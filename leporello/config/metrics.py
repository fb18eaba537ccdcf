"""Builds the metrics that a task or a command lists."""

import json
from collections.abc import Iterable, Sequence

from leporello.config.specs import Spec
from leporello.config.sweeps import SpecBuilder, spec_of
from leporello.core.errors import ConfigError, UserError, build_all
from leporello.core.protocols import METRIC, MetricEntry
from leporello.core.yaml.tree import Tree
from leporello.metrics import Metric
from leporello.metrics.own import OwnMetric


def metric_specs(builder: SpecBuilder, tree: Tree | None) -> list[Spec]:
    """Returns the metrics of a list in YAML; raises ConfigError."""
    if tree is None:
        return []
    if not isinstance(tree.value, list):
        raise ConfigError([tree.fault(f"{builder.owner}.metrics: must be a list of metrics")])
    return build_all(
        enumerate(tree.value),
        lambda place: builder.of_class(place[1].as_class(), METRIC, "metrics", str(place[0])),
    )


def entry_of(spec: Spec) -> MetricEntry:
    """Returns a metric as a task lists it: a mapping, or only its name if it has no parameters."""
    return spec.configured() if spec.params else spec.name


def specs_of(entries: Iterable[MetricEntry]) -> list[Spec]:
    """Returns the metrics that a task lists, or the texts of `--metric`."""
    # Metrics are listed as JSON everywhere: in tasks, `--metric`, signatures and run.yaml. So
    # workers, `compare` and `report` build the same metric without the task (decision 39).
    texts = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    specs = [spec_of(text, METRIC, "metrics") for text in texts]
    # A retriever of everything has a recall of 100.
    if (names := [spec.name for spec in specs]).count("recall") and "recall_read" not in names:
        specs.insert(names.index("recall"), spec_of("recall_read", METRIC, "metrics"))
    return specs


def own_metrics(entries: Iterable[MetricEntry]) -> list[Spec]:
    """Returns the metrics that are not built in."""
    return [spec for spec in specs_of(entries) if not _is_built_in(spec.cls)]


def metrics_of(entries: Sequence[MetricEntry]) -> dict[str, Metric]:
    """Returns the metrics that a task lists, by name; two of one name are an error."""
    metrics: dict[str, Metric] = {}
    for spec in specs_of(entries):
        built = spec.build()
        metric: Metric = built if _is_built_in(spec.cls) else OwnMetric(built, spec.given())
        if metrics.setdefault(metric.name, metric) != metric:
            raise UserError(
                f"two metrics are called {metric.name!r}: give your metric another `name`"
            )
    return metrics


def _is_built_in(cls: type) -> bool:
    return cls.__module__.startswith("leporello.metrics.")
