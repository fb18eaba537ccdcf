"""Finds the best choices of a pipeline, and writes them with an estimate on other documents."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

from leporello.cache.store import Cache
from leporello.config import PipelineSpec, load_space
from leporello.config.loading import check_files
from leporello.config.space import Space
from leporello.config.specs import shortened
from leporello.core import __version__
from leporello.core.errors import UserError
from leporello.core.files import cache_directory, check_own, locked, read_json, write_json
from leporello.core.hashing import digest
from leporello.core.records import JSON
from leporello.core.yaml.scalars import write_yaml
from leporello.jobs.directory import safe_name
from leporello.jobs.options import TuneOptions, takes
from leporello.tuning.account import Account, parse_budget
from leporello.tuning.documents import Round, leading, rounds_of, tuned_task
from leporello.tuning.evaluation import Estimate, Evaluator, Measured
from leporello.tuning.search import LEAST, SHARES, PointSearch, ScoredPoint

_TUNED = "Chosen by `tune` on"  # in every file that it writes
_ELSEWHERE = ("pipeline", "config", "tasks", "metrics")  # fields that the file has in other places


@dataclass(frozen=True)
class Tuned:
    """Result of `tune`. The baseline is the pipeline as declared, without any choice."""

    pipeline: str  # name of the tuned pipeline
    config: Path  # file that declares it
    tasks: tuple[str, ...]  # names of the tasks
    metrics: Mapping[str, str]  # name of the score of each task, by task
    chosen: Mapping[str, float | str]  # chosen values by path; empty if the baseline was best
    points: int  # number of points that were scored, including the baseline
    stopped: int  # number of points that were stopped early
    refused: int  # number of proposals that stages refused
    documents: int  # number of documents that the points were chosen on
    score: float  # mean of the tasks' scores on these documents
    gain: Estimate  # difference to the baseline on these documents
    apart: int  # number of documents that were kept apart from the search
    estimate: Estimate  # mean of the tasks' scores on the documents kept apart
    apart_gain: Estimate  # difference to the baseline on the documents kept apart
    optimism: float  # points by which `score` exceeds `estimate`
    searches: int  # number of searches; if several, each document was kept apart from one of them
    # Scores of the baseline and the tuned pipeline on both sides, by task.
    by_task: Mapping[str, Mapping[str, float]]
    front: tuple[Mapping[str, JSON], ...]  # choices, score and cost of the Pareto front of points
    seed: int  # seed of the division of documents and of the proposals
    cost: str = ""  # unit of the costs; empty if the search ignored them


@takes(TuneOptions)
def tune(options: TuneOptions) -> Tuned:
    """Searches for the best point of a pipeline, or resumes an earlier search.

    Sweeps and ranges among the overrides are choices. Scores are stored beside the tuned config.
    """
    limits = parse_budget(options.budget)
    if find_spec("optuna") is None:
        raise UserError("tune needs Optuna: install it with `pip install 'leporello[tune]'`")
    loaded, choices, baseline = load_space(options.config, options.settings, options.pipeline)
    if not choices.check():
        raise UserError(
            f"{choices.name} has no choices: give some by --set retriever.k=2,4,8 or"
            " --set 'retriever.k={range: [1, 64], log: true}', or in the YAML"
        )
    selected = loaded.select_tasks(baseline, options.tasks)
    file = options.out or Path("tuned") / f"{safe_name(choices.name)}.yaml"
    if file.suffix not in (".yaml", ".yml"):
        raise UserError(f"--out {file}: must be a YAML file, such as {file.name}.yaml")
    check_own(file, _TUNED)
    check_files([baseline])
    split = options.split
    tuned = [
        tuned_task(t.with_split(split) if split else t, options.metric, options.limit)
        for t in selected
    ]
    folder = file.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    busy = f"{folder}: another process tunes in this folder: wait, or give another --out"
    with locked(folder / ".lock", busy):
        account = Account(options.budget, *limits)
        cache = Cache(cache_directory()) if options.cached else None
        by_name = {task.name: task for task in tuned}
        evaluator = Evaluator(folder, by_name, cache, account, options.seed)
        return Searches(choices, baseline, evaluator, options.cost or "").run(file)


@dataclass
class Searches:
    """The searches of one `tune`, and their result."""

    space: Space  # pipeline with its choices
    baseline: PipelineSpec  # pipeline as declared, without any choice
    evaluator: Evaluator
    cost: str  # unit of the second objective; empty to use only the score
    finished: list[PointSearch] = field(default_factory=list)  # searches so far
    # Best point and baseline of each search on the documents kept apart from it.
    apart: list[tuple[Measured, Measured]] = field(default_factory=list)

    def run(self, file: Path) -> Tuned:
        """Searches, writes the config with the best pipeline, and returns the result."""
        tasks, account = self.evaluator.tasks, self.evaluator.account
        rounds = rounds_of([*tasks.values()], self.evaluator.seed)
        marker = self.evaluator.folder / "searches.json"
        settings = [account.text, *sorted(self.space.check().items())]
        identity = digest(
            [repr(settings), *map(self._identity, tasks), self.cost, self.evaluator.seed]
        )
        tried = read_json(marker).get(identity, []) if marker.exists() else []
        account.searches = len(rounds)
        account.check_enough(self._seconds(rounds[0]) if account.budget.seconds else 0.0)
        for number, round_ in enumerate(rounds):
            account.search, account.searches = number + 1, len(rounds)
            allowed = account.points_left(sum(search.tried for search in self.finished))
            self._search(round_, tried[number] if number < len(tried) else allowed)
            write_json(marker, {identity: [search.tried for search in self.finished]})
        result = self._result(rounds, file)
        declared: dict[str, Any] = {
            "description": f"{_TUNED} {', '.join(result.tasks)}",
            "tasks": [*result.tasks],
            **self.finished[-1].best.pipeline.resolved(),
            "tuned": self._record(result),
        }
        write_yaml(file, {"pipelines": {result.pipeline: declared}})
        return result

    def _record(self, result: Tuned) -> dict[str, JSON]:
        """Returns the record of the search that the config contains."""
        account = self.evaluator.account
        fields = {name: value for name, value in asdict(result).items() if name not in _ELSEWHERE}
        return {
            **json.loads(json.dumps(fields)),
            "tasks": {name: self._task(name) for name in result.tasks},
            "budget": account.text,
            "seconds": round(account.spent.seconds, 1),
            "dollars": account.spent.dollars if account.is_priced else None,
            "leporello": __version__,
        }

    def _task(self, name: str) -> dict[str, JSON]:
        task, keys = self.evaluator.tasks[name], self.finished[-1].documents[name]
        examples = (example for key in keys for example in task.documents[key])
        return {
            "data": task.data,
            "metric": task.metric.headline,
            "signature": task.metric.signature,
            "documents": [*sorted({shortened(example.document.sha256) for example in examples})],
        }

    def _identity(self, task: str) -> list[JSON]:
        documents = [*self.evaluator.tasks[task].documents]
        return [task, self.evaluator.identity(self.baseline, task), digest([*documents])]

    def _seconds(self, round_: Round) -> float:
        """Returns the estimated duration of a search with one point, from three documents."""
        task, keys = next(iter(round_.chosen_on.items()))
        self.evaluator.measured(self.baseline, {task: keys[:1]})  # also loads the models
        began = self.evaluator.account.spent
        self.evaluator.measured(self.baseline, {task: keys[1:3]})
        per_document = (self.evaluator.account.spent.seconds - began.seconds) / len(keys[1:3])
        point = leading(round_.chosen_on, SHARES[0], LEAST)
        # The best point will cost as much as the pipeline on the documents kept apart.
        parts = (round_.chosen_on, point, round_.apart, round_.apart)
        return per_document * sum(len(k) for documents in parts for k in documents.values())

    def _search(self, round_: Round, most: int | None) -> None:
        """Searches on some documents, then scores the best point on those kept apart."""
        account, began = self.evaluator.account, self.evaluator.account.spent
        baseline = self.evaluator.measured(self.baseline, round_.apart)
        account.reserve = account.spent - began  # the best point will cost about the same there
        search = PointSearch(self.space, self.evaluator, round_.chosen_on, self.cost, most)
        search.run(self.baseline, f"tuning {self.space.name}")
        self.finished.append(search)
        best = self.evaluator.measured(search.best.pipeline, round_.apart)
        self.apart.append((best, baseline))

    def _result(self, rounds: Sequence[Round], file: Path) -> Tuned:
        last, evaluator = self.finished[-1], self.evaluator
        best, baseline = map(_merged, zip(*self.apart, strict=True))
        pairs = zip(self.finished, rounds, strict=True)
        tested = [search for search, round_ in pairs if any(round_.apart.values())]
        estimate = evaluator.estimate(best)
        sides = {
            "chosen on": (last.best.measured, next(iter(last.known.values())).measured),
            "apart": (best, baseline),
        }
        return Tuned(
            pipeline=f"{self.space.name}-tuned",
            config=file,
            tasks=(*evaluator.tasks,),
            metrics={n: task.metric.headline for n, task in evaluator.tasks.items()},
            chosen=last.best.chosen,
            points=len({key for search in self.finished for key in search.known}),
            stopped=sum(len(search.known) - len(search.complete) for search in self.finished),
            refused=sum(search.refused for search in self.finished),
            documents=_count(last.best.measured),
            score=last.best.score,
            gain=evaluator.difference(*sides["chosen on"]),
            apart=_count(best),
            estimate=estimate,
            apart_gain=evaluator.difference(*sides["apart"]),
            optimism=round(fmean(s.best.score for s in tested) - estimate.value, 4),
            searches=len(self.finished),
            by_task={
                task: {
                    f"{side}, {name}": evaluator.score(measured, task)
                    for side, pair in sides.items()
                    for name, measured in zip(("tuned", "as it is"), pair, strict=True)
                }
                for task in evaluator.tasks
            },
            front=tuple(map(_row, last.front)) if self.cost else (),
            seed=evaluator.seed,
            cost=self.cost,
        )


def _merged(measured: Sequence[Measured]) -> Measured:
    names = dict.fromkeys(name for tasks in measured for name in tasks)
    return {
        name: {key: rows for tasks in measured for key, rows in tasks.get(name, {}).items()}
        for name in names
    }


def _count(measured: Measured) -> int:
    return sum(map(len, measured.values()))


def _row(point: ScoredPoint) -> dict[str, JSON]:
    return {"chosen": {**point.chosen}, "score": point.score, "cost": round(point.cost, 6)}
