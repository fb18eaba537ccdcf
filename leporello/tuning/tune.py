"""Finds the best of what a pipeline leaves open, and says what that is worth elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean

from filelock import FileLock, Timeout

from leporello.cache.store import Cache
from leporello.config import PipelineSpec, load_space
from leporello.config.loading import check_files
from leporello.config.space import Space, first
from leporello.core.errors import UserError
from leporello.core.files import read_json, write_json
from leporello.core.hashing import digest
from leporello.core.records import JSON
from leporello.jobs.directory import safe_name
from leporello.jobs.options import TuneOptions, takes
from leporello.models.locate import cache_directory
from leporello.tuning.account import Account, parse_budget
from leporello.tuning.documents import Round, rounds_of, tuned_task
from leporello.tuning.estimates import Estimates
from leporello.tuning.evaluation import Evaluator, Measured
from leporello.tuning.record import Tuned, write_config
from leporello.tuning.search import PointSearch, ScoredPoint


@takes(TuneOptions)
def tune(options: TuneOptions) -> Tuned:
    """Searches for the best point of a pipeline; the same call again goes on, or tells again.

    Sweeps and ranges among the overrides are choices. Scored points lie beside the tuned config.

    Raises:
        UserError: Any mistake of the user's; before any work where it can be known then.
    """
    limits = parse_budget(options.budget)
    if find_spec("optuna") is None:
        raise UserError("tune needs Optuna: install it with `pip install 'leporello[tune]'`")
    loaded, choices, fixed = load_space(
        options.config, options.settings, options.pipeline, options.space
    )
    if not choices.check():
        raise UserError(
            f"{choices.name} leaves nothing to choose: give choices by --set retriever.k=2,4,8 or"
            " --set 'retriever.k={range: [1, 64], log: true}', by --space, or in the YAML"
        )
    shipped, _ = fixed.point(first)
    named = loaded.select_tasks(shipped, options.tasks)
    check_files([shipped])
    split = options.split
    tuned = [
        tuned_task(t.with_split(split) if split else t, options.metric, options.limit)
        for t in named
    ]
    file = options.out or Path("tuned") / f"{safe_name(choices.name)}.yaml"
    if file.suffix not in (".yaml", ".yml"):
        raise UserError(f"--out {file}: names the config that is written: {file.name}.yaml")
    with _held(file.with_suffix("")) as folder:
        account = Account(options.budget, *limits)
        cache = Cache(cache_directory()) if options.cached else None
        evaluator = Evaluator(folder, {task.name: task for task in tuned}, cache, account)
        searches = Searches(choices, shipped, evaluator, options.seed, options.cost or "")
        return searches.run(file)


@contextmanager
def _held(folder: Path) -> Iterator[Path]:
    """Makes a folder, and keeps other processes out of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock", timeout=0):
            yield folder
    except Timeout:
        message = f"{folder}: another process tunes there: wait for it, or give another --out"
        raise UserError(message) from None
    except OSError as error:
        raise UserError(f"{folder}: cannot be written to: {error.strerror}") from error


@dataclass
class Searches:
    """The searches of one `tune`, and what is said of them.

    Attributes:
        space: The pipeline with its choices.
        shipped: The pipeline as it is.
        evaluator: Evaluator of points.
        seed: Seed of everything.
        cost: Unit of the second objective; empty for the score alone.
    """

    space: Space
    shipped: PipelineSpec
    evaluator: Evaluator
    seed: int
    cost: str
    done: list[PointSearch] = field(default_factory=list)
    apart: list[tuple[Measured, Measured]] = field(default_factory=list)  # the best, as it is

    def run(self, file: Path) -> Tuned:
        """Searches, writes the config, and returns what was found."""
        tasks, account = self.evaluator.tasks, self.evaluator.account
        rounds = rounds_of([*tasks.values()], self.seed)
        marker = self.evaluator.folder / "searches.json"
        settings = [account.text, *sorted(self.space.check().items())]
        identity = digest(
            [repr(settings), *(self._identity(name) for name in tasks), self.cost, self.seed]
        )
        tried = read_json(marker).get(identity, []) if marker.exists() else []
        for number, round_ in enumerate(rounds):
            account.search, account.searches = number + 1, len(rounds)
            left = account.points_left(sum(search.tried for search in self.done))
            self._search(round_, tried[number] if number < len(tried) else left)
            write_json(marker, {identity: [search.tried for search in self.done]})
        found = self._told(rounds, file)
        last = self.done[-1]
        write_config(file, found, last.best.pipeline, last.documents, self.evaluator)
        return found

    def _identity(self, task: str) -> list[JSON]:
        documents = [*self.evaluator.tasks[task].documents]
        return [task, self.evaluator.identity(self.shipped, task), digest([*documents])]

    def _search(self, round_: Round, most: int | None) -> None:
        """Searches on some documents, and looks at the others once it is over."""
        account, began = self.evaluator.account, self.evaluator.account.spent
        as_it_is = self.evaluator.measured(self.shipped, round_.apart)
        account.reserve = account.spent - began  # the best is to be looked at there, too
        estimates = Estimates(self.evaluator.tasks, self.seed)
        search = PointSearch(
            self.space, self.evaluator, estimates, round_.chosen_on, self.seed, self.cost, most
        )
        search.run(self.shipped, f"tuning {self.space.name}")
        self.done.append(search)
        best = self.evaluator.measured(search.best.pipeline, round_.apart)
        self.apart.append((best, as_it_is))

    def _told(self, rounds: Sequence[Round], file: Path) -> Tuned:
        last, estimates = self.done[-1], self.done[-1].estimates
        best, as_it_is = map(_together, zip(*self.apart, strict=True))
        pairs = zip(self.done, rounds, strict=True)
        kept_apart = [search for search, round_ in pairs if any(round_.apart.values())]
        estimate = estimates.of(best)
        sides = {
            "chosen on": (last.best.measured, last.points[0].measured),
            "apart": (best, as_it_is),
        }
        return Tuned(
            pipeline=f"{self.space.name}-tuned",
            config=file,
            tasks=(*self.evaluator.tasks,),
            metrics={n: task.metric.headline for n, task in self.evaluator.tasks.items()},
            chosen=last.best.chosen,
            points=len({key for search in self.done for key in search.known}),
            stopped=sum(not point.complete for search in self.done for point in search.points),
            refused=sum(search.refused for search in self.done),
            documents=_count(last.best.measured),
            score=last.best.score,
            gain=estimates.difference(*sides["chosen on"]),
            apart=_count(best),
            estimate=estimate,
            apart_gain=estimates.difference(*sides["apart"]),
            optimism=round(fmean(s.best.score for s in kept_apart) - estimate.value, 4),
            harder=round(
                fmean(s.points[0].score for s in kept_apart) - estimates.score(as_it_is), 4
            ),
            searches=len(self.done),
            by_task={
                task: {
                    f"{side}, {name}": estimates.score(measured, task)
                    for side, pair in sides.items()
                    for name, measured in zip(("tuned", "as it is"), pair, strict=True)
                }
                for task in self.evaluator.tasks
            },
            front=tuple(map(_row, last.front)) if self.cost else (),
            seed=self.seed,
            cost=self.cost,
        )


def _together(measured: Sequence[Measured]) -> Measured:
    """Returns what several searches left apart as one."""
    tasks = dict.fromkeys(task for one in measured for task in one)
    return {
        task: {key: rows for one in measured for key, rows in one.get(task, {}).items()}
        for task in tasks
    }


def _count(measured: Measured) -> int:
    return sum(map(len, measured.values()))


def _row(point: ScoredPoint) -> dict[str, JSON]:
    return {"chosen": {**point.chosen}, "score": point.score, "cost": round(point.cost, 6)}
