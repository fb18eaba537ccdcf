"""Worker processes on this machine."""

from collections.abc import Sequence
from multiprocessing.connection import wait

from leporello.config.placement import Placement, visible_gpus
from leporello.core.errors import UserError
from leporello.engine.failures import TRIES
from leporello.executors.channel import dump
from leporello.executors.child_process import INTERVAL, WorkerProcess
from leporello.executors.interface import JobGroupSpec
from leporello.executors.pool import WorkerLink, Workplace


class LocalWorkers(Workplace):
    """Worker processes on this machine."""

    tries = TRIES
    advice = "see its output above, or use --workers 0 to run in this process"

    def __init__(self, spec: JobGroupSpec, placement: Placement, count: int) -> None:
        """Prepares up to `count` workers; starts none."""
        self._spec, self._placement, self.workers = dump(spec), placement, count
        self._gpus: dict[WorkerLink, str | None] = {}

    def start(self, others: Sequence[WorkerLink]) -> WorkerLink:
        """Starts a worker on the GPU with the fewest workers."""
        gpus_in_use = [self._gpus[link] for link in others]
        # By current workers, since a replaced worker must get the GPU that became free.
        gpu = min(visible_gpus(), key=gpus_in_use.count, default=None)
        variables = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
        placement = self._placement
        try:
            link = WorkerProcess(self._spec, placement.threads, variables, placement.worker_bytes)
        except OSError as error:
            raise UserError(
                f"a worker process could not start: {error.strerror}; use fewer --workers, or"
                " raise the limit (ulimit)"
            ) from error
        self._gpus[link] = gpu
        return link

    def ready(self, links: Sequence[WorkerLink]) -> Sequence[WorkerLink]:
        """See `Workplace`."""
        processes = [link for link in links if isinstance(link, WorkerProcess)]
        if not any(process.has_message() for process in processes):
            wait([process.fileno() for process in processes], INTERVAL)
        return [process for process in processes if process.has_message()]
