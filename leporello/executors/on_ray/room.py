"""Whether a cluster has room for an actor."""

from __future__ import annotations

from leporello.errors import UserError

__all__ = ["PATIENCE", "check_room"]

PATIENCE = 30.0  # seconds without room in the cluster before that is told


def check_room(kind: str, gpus: float, cpus: float, memory: int = 0) -> None:
    """Refuses what no node has, busy or not.

    Args:
        kind: `reader` or `worker`, as the settings of a placement begin.
        gpus: That each such actor is to reserve.
        cpus: Likewise.
        memory: Likewise, in bytes.

    Raises:
        UserError: No node is large enough.
    """
    import ray

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]  # Ray leaves it so
    gib = memory / 2**30
    wanted = (("GPU", "gpus", gpus, 1), ("CPU", "cpus", cpus, 1), ("memory", "memory", gib, 2**30))
    for what, setting, needed, unit in wanted:
        most = max((node.get(what, 0.0) / unit for node in nodes), default=0.0)
        if needed > most:
            kept = "GiB of memory" if unit > 1 else what
            raise UserError(
                f"each {kind} is to reserve {needed:.4g} {kept}, and no node of the Ray cluster has"
                f" more than {most:.4g} (`ray status`): lower {kind}_{setting}, or add such a"
                " node (one at least has to be there before the run, also where the cluster grows"
                " by itself)"
            )
