"""Search for the best point: Optuna proposes points, which are scored on more and more documents.

The same seed, space and scores lead to the same proposals: a search that was interrupted proposes
its points again, takes the stored scores of those scored before, and continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from leporello.config import PipelineSpec
from leporello.config.space import Choice, Options, Space
from leporello.config.sweeps import all_picks
from leporello.core.calls.memory import canonical
from leporello.core.errors import ConfigError, Stopped, UserError, counted
from leporello.engine.progress import Progress
from leporello.tuning.documents import Documents, leading
from leporello.tuning.evaluation import Evaluator, Measured, cost

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import TrialState

SHARES, LEAST = (1 / 8, 1 / 4, 1 / 2, 1), 4  # documents that a point is scored on, step by step
_RESAMPLES = 2_000  # to decide whether to drop the point
_REPEATS = 20  # proposals of scored points in a row before a new point is enumerated
_ENUMERATED = 100_000


@dataclass(frozen=True, slots=True)
class ScoredPoint:
    """A pipeline with its score."""

    pipeline: PipelineSpec
    chosen: Mapping[str, float | str]  # chosen values by path; empty for the baseline
    measured: Measured  # statistics of its examples
    score: float  # mean of the tasks' scores on these examples
    cost: float  # mean cost per question
    complete: bool = True  # whether it was scored on all documents, not stopped early


@dataclass
class PointSearch:
    """Searches for the best point on some documents."""

    space: Space  # pipeline with its choices
    evaluator: Evaluator
    documents: Documents
    # Unit of the second objective, as in `evaluation.cost`; empty to use only the score.
    cost: str = ""
    # Number of points after which the search ends; if None, the account decides.
    most: int | None = None
    # Points scored so far, by a key of their parameters; the first one is the baseline.
    known: dict[str, ScoredPoint] = field(default_factory=dict)
    refused: int = 0  # number of proposals that stages refused

    @property
    def tried(self) -> int:
        """Number of points that were scored, without the baseline."""
        return len(self.known) - 1

    @property
    def complete(self) -> list[ScoredPoint]:
        """Points that were scored on all documents."""
        return [point for point in self.known.values() if point.complete]

    @property
    def best(self) -> ScoredPoint:
        """The first point with the highest score."""
        return max(self.complete, key=lambda point: point.score)

    @property
    def front(self) -> list[ScoredPoint]:
        """The Pareto front of score and cost, with the highest score first."""
        front: list[ScoredPoint] = []
        for point in sorted(self.complete, key=lambda p: (-p.score, p.cost)):
            if not front or point.cost < front[-1].cost:
                front.append(point)
        return front

    def run(self, baseline: PipelineSpec, title: str) -> None:
        """Scores the baseline and proposed points until the budget is spent; raises UserError."""
        account, began = self.evaluator.account, self.evaluator.account.spent.seconds
        with Progress(title) as progress, suppress(Stopped):
            _check_failures(scored := self._score(baseline, {}))
            if self.cost and not scored.cost:
                raise UserError(
                    f"--cost {self.cost}: the reader does not report them; use characters"
                )
            for trial, point, chosen in self._trials():
                if self._is_spent:
                    break
                self._report(trial, self._score(point, chosen))
                progress.example()
        if len(self.known) > 1:
            return
        if self.known and not self._is_spent:
            raise UserError(f"{self.space.name}: no choice differs from the pipeline as declared")
        raise UserError(
            f"--budget {account.text!r} is too small for one point: it was not scored after"
            f" {account.spent.seconds - began:.0f} s; increase it, or use fewer examples with"
            " --limit: the same command resumes from here"
        )

    @property
    def _is_spent(self) -> bool:
        if self.most is None:
            return self.evaluator.account.is_spent
        return self.tried >= self.most

    def _check(self) -> None:
        if self.most is None:
            self.evaluator.account.check()

    # -- points ----------------------------------------------------------------------------------

    def _score(self, pipeline: PipelineSpec, chosen: Mapping[str, float | str]) -> ScoredPoint:
        """Scores one point on more and more documents until it is hopeless, and adds it."""
        steps = {str(d): d for d in (leading(self.documents, share, LEAST) for share in SHARES)}
        for documents in steps.values():
            measured = self.evaluator.measured(pipeline, documents, self._check)
            spent = cost(measured, self.cost or "characters")
            point = ScoredPoint(pipeline, chosen, measured, self.evaluator.score(measured), spent)
            if self.known and self._is_hopeless(point):
                point = replace(point, complete=documents == self.documents)
                break
        self.known[_key(pipeline)] = point
        return point

    def _is_hopeless(self, point: ScoredPoint) -> bool:
        """Returns whether a point is significantly worse than a complete one.

        Both are compared over the documents of the point; with costs, only with a complete point
        that is not more expensive.
        """
        for rival in self.front if self.cost else [self.best]:
            shared = {
                task: {key: rival.measured[task][key] for key in documents}
                for task, documents in point.measured.items()
            }
            if self.cost and cost(shared, self.cost) > point.cost:
                continue
            ends = self.evaluator.difference(point.measured, shared, _RESAMPLES).interval
            if ends and ends[1] < 0:
                return True
        return False

    # -- proposals -------------------------------------------------------------------------------

    def _trials(self) -> Iterator[tuple[Trial, PipelineSpec, Mapping[str, float | str]]]:
        """Yields Optuna's proposals of new points; ends once no point is new."""
        study, unknown, repeats = self._study(), self._unknown(), 0
        while True:
            trial = study.ask()
            try:
                point, chosen = self.space.point(partial(_suggested, trial))
            except ConfigError:
                self.refused += 1
                study.tell(trial, state=_state("FAIL"))
            else:
                if (scored := self.known.get(_key(point))) is None:
                    repeats = 0
                    yield trial, point, chosen
                    continue
                self._report(trial, scored)
            repeats += 1
            if repeats >= _REPEATS:
                if (choices := next(unknown, None)) is None:
                    return
                study.enqueue_trial({**choices})

    def _unknown(self) -> Iterator[Mapping[str, float | str]]:
        """Yields the choices of points that were not scored; nothing if a choice is a range."""
        for pick in all_picks(_ENUMERATED):
            with suppress(ConfigError):
                point, chosen = self.space.point(pick)
                if _key(point) not in self.known:
                    yield chosen

    def _study(self) -> Study:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        directions: list[Literal["maximize", "minimize"]] = ["maximize"]
        directions += ["minimize"] if self.cost else []
        sampler = optuna.samplers.TPESampler(seed=self.evaluator.seed)
        return optuna.create_study(directions=directions, sampler=sampler)

    def _report(self, trial: Trial, point: ScoredPoint) -> None:
        """Reports the score of a proposal to Optuna, or that it was stopped early."""
        values = [point.score, *([point.cost] if self.cost else [])]
        if point.complete:
            trial.study.tell(trial, values)
            return
        if not self.cost:  # Optuna ranks stopped trials by their score, if that is the objective
            trial.report(point.score, sum(map(len, point.measured.values())))
        trial.study.tell(trial, state=_state("PRUNED"))


def _check_failures(baseline: ScoredPoint) -> None:
    """Raises UserError if most examples of the baseline failed: its scores are meaningless."""
    examples = [e for task in baseline.measured.values() for rows in task.values() for e in rows]
    failures = [example.failure for example in examples if example.failure]
    if len(failures) * 2 > len(examples):
        stage, error = failures[0]
        raise UserError(
            f"{len(failures)} of {counted(len(examples), 'example')} failed with the pipeline as"
            f" declared; the {stage}: {error}"
        )


def _state(name: str) -> TrialState:
    from optuna.trial import TrialState

    return TrialState[name]


def _suggested(trial: Trial, path: str, choice: Choice) -> float:
    if isinstance(choice, Options):
        return choice.labels.index(trial.suggest_categorical(path, choice.labels))
    if choice.is_integer:
        return trial.suggest_int(path, int(choice.low), int(choice.high), log=choice.log)
    return trial.suggest_float(path, choice.low, choice.high, log=choice.log)


def _key(point: PipelineSpec) -> str:
    return canonical(point.resolved())
