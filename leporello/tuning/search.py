"""A search: points proposed by Optuna, scored on more and more documents, stopped where hopeless.

The same seed, space and scores propose the same points: a search that was killed goes through its
points again, of which those scored before cost nothing, and goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from leporello.config import PipelineSpec
from leporello.config.space import Choice, Options, Space
from leporello.core.calls.memory import canonical
from leporello.core.errors import ConfigError, Stopped, UserError
from leporello.engine.progress import Progress
from leporello.tuning.documents import Documents, leading
from leporello.tuning.estimates import Estimates, cost
from leporello.tuning.evaluation import Evaluator, Measured

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import TrialState

_SHARES, _LEAST = (1 / 8, 1 / 4, 1 / 2, 1), 4  # documents that a point is scored on step by step
_RESAMPLES = 2_000  # for whether to go on
_REPEATS = 20  # proposals of known points in a row, after which one is taken that is not
_ENUMERATED = 100_000


@dataclass(frozen=True, slots=True)
class ScoredPoint:
    """A pipeline that was scored.

    Attributes:
        pipeline: The pipeline.
        chosen: Its choices, by path; none for the pipeline as it was.
        measured: Its examples.
        score: Mean of the tasks' scores on these.
        cost: Mean cost of a question.
        complete: Whether it was scored on all documents, rather than stopped early.
    """

    pipeline: PipelineSpec
    chosen: Mapping[str, float | str]
    measured: Measured
    score: float
    cost: float
    complete: bool = True


@dataclass
class PointSearch:
    """Looks for the best point on some documents.

    Attributes:
        space: The pipeline with its choices.
        evaluator: Evaluator of points.
        estimates: Estimates over documents.
        documents: Documents that are looked at.
        seed: Seed of the proposals.
        cost: Unit of the second objective, as `estimates.cost` has it; empty for the score alone.
        most: Number of points after which it ends, by the budget or because an earlier process
            ended there; None asks the account.
        points: Points scored so far, the pipeline as it is first.
        known: These by what they are.
        refused: Number of proposals that stages refused.
    """

    space: Space
    evaluator: Evaluator
    estimates: Estimates
    documents: Documents
    seed: int
    cost: str = ""
    most: int | None = None
    points: list[ScoredPoint] = field(default_factory=list)
    known: dict[str, ScoredPoint] = field(default_factory=dict)
    refused: int = 0

    @property
    def tried(self) -> int:
        """How many points were scored besides the pipeline as it is."""
        return len(self.points) - 1

    @property
    def best(self) -> ScoredPoint:
        """The point of the highest score, the first of equals."""
        return max((p for p in self.points if p.complete), key=lambda point: point.score)

    @property
    def front(self) -> list[ScoredPoint]:
        """The points than which no other is better and not dearer, the best first."""
        found: list[ScoredPoint] = []
        complete = [point for point in self.points if point.complete]
        for point in sorted(complete, key=lambda p: (-p.score, p.cost)):
            if not found or point.cost < found[-1].cost:
                found.append(point)
        return found

    def run(self, shipped: PipelineSpec, title: str) -> None:
        """Scores the pipeline as it is, and then points, until the budget is spent.

        Raises:
            UserError: A mistake of the user's; or the budget is too small for one point.
        """
        account, began = self.evaluator.account, self.evaluator.account.spent.seconds
        with Progress(title) as progress, suppress(Stopped):
            _check_failures(as_it_is := self._score(shipped, {}))
            if self.cost and not as_it_is.cost:
                raise UserError(f"--cost {self.cost}: the reader tells none; characters are known")
            for trial, point, chosen in self._trials():
                if self._is_spent:
                    break
                self._tell(trial, self._score(point, chosen))
                progress.example()
        if len(self.points) > 1:
            return
        if self.points and not self._is_spent:
            raise UserError(f"{self.space.name}: its choices come to the pipeline as it is")
        raise account.too_small(
            "another point is" if self.points else "the pipeline as it is was",
            sum(map(len, self.documents.values())),
            account.spent.seconds - began,
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
        """Scores a point on more and more documents, and keeps it."""
        steps = {str(d): d for d in (leading(self.documents, share, _LEAST) for share in _SHARES)}
        for documents in steps.values():
            measured = self.evaluator.measured(pipeline, documents, self._check)
            spent = cost(measured, self.cost or "characters")
            point = ScoredPoint(pipeline, chosen, measured, self.estimates.score(measured), spent)
            if self.points and self._is_hopeless(point):
                point = replace(point, complete=documents == self.documents)
                break
        self.known[_key(pipeline)] = point
        self.points.append(point)
        return point

    def _is_hopeless(self, point: ScoredPoint) -> bool:
        """Says whether a point loses to a complete one, surely, over the same documents.

        Where costs count, to one that is not dearer.
        """
        for rival in self.front if self.cost else [self.best]:
            shared = {
                t: {key: rival.measured[t][key] for key in own} for t, own in point.measured.items()
            }
            if self.cost and cost(shared, self.cost) > point.cost:
                continue
            ends = self.estimates.difference(point.measured, shared, _RESAMPLES).interval
            if ends and ends[1] < 0:
                return True
        return False

    # -- proposals -------------------------------------------------------------------------------

    def _trials(self) -> Iterator[tuple[Trial, PipelineSpec, Mapping[str, float | str]]]:
        """Yields what Optuna proposes that is not known yet; ends where nothing else is."""
        study, unknown, repeats = self._study(), self._unknown(), 0
        while True:
            trial = study.ask()
            try:
                point, chosen = self.space.point(partial(_suggested, trial))
            except ConfigError:
                self.refused += 1
                study.tell(trial, state=_state("FAIL"))
            else:
                if (known := self.known.get(_key(point))) is None:
                    repeats = 0
                    yield trial, point, chosen
                    continue
                self._tell(trial, known)
            repeats += 1
            if repeats >= _REPEATS:
                if (left := next(unknown, None)) is None:
                    return
                study.enqueue_trial({**left})

    def _unknown(self) -> Iterator[Mapping[str, float | str]]:
        """Yields the choices of points that are not known; none where there are ranges."""
        for pick in self.space.all_picks(_ENUMERATED):
            with suppress(ConfigError):
                point, chosen = self.space.point(pick)
                if _key(point) not in self.known:
                    yield chosen

    def _study(self) -> Study:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        directions: list[Literal["maximize", "minimize"]] = ["maximize"]
        directions += ["minimize"] if self.cost else []
        sampler = optuna.samplers.TPESampler(seed=self.seed)
        return optuna.create_study(directions=directions, sampler=sampler)

    def _tell(self, trial: Trial, point: ScoredPoint) -> None:
        """Tells what came of a proposal; one stopped early has a score of fewer documents."""
        values = [point.score, *([point.cost] if self.cost else [])]
        if point.complete:
            trial.study.tell(trial, values)
            return
        if not self.cost:  # Optuna ranks what was stopped by where it stood; not by two objectives
            trial.report(point.score, sum(map(len, point.measured.values())))
        trial.study.tell(trial, state=_state("PRUNED"))


def _check_failures(shipped: ScoredPoint) -> None:
    """Refuses a pipeline that does not work: its scores say nothing.

    Raises:
        UserError: Most examples failed; the text says why the first of them did.
    """
    examples = [e for task in shipped.measured.values() for rows in task.values() for e in rows]
    failures = [example.failure for example in examples if example.failure]
    if len(failures) * 2 > len(examples):
        stage, error = failures[0]
        raise UserError(
            f"{len(failures)} of {len(examples)} examples failed before anything was chosen; the"
            f" {stage}: {error}"
        )


def _state(name: str) -> TrialState:
    from optuna.trial import TrialState

    return TrialState[name]


def _suggested(trial: Trial, path: str, choice: Choice) -> float:
    if isinstance(choice, Options):
        return choice.labels.index(trial.suggest_categorical(path, choice.labels))
    if choice.whole:
        return trial.suggest_int(path, int(choice.low), int(choice.high), log=choice.log)
    return trial.suggest_float(path, choice.low, choice.high, log=choice.log)


def _key(point: PipelineSpec) -> str:
    return canonical(point.resolved())
