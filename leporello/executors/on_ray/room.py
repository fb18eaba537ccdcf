"""Whether a cluster has room for an actor."""

from __future__ import annotations

from leporello.errors import UserError

__all__ = ["PATIENCE", "check_room"]

PATIENCE = 60.0  # seconds without room in the cluster before that is told


def check_room(kind: str, gpus: float, cpus: float) -> None:
    """Refuses what no node has, busy or not.

    Args:
        kind: `reader` or `worker`, as the settings of a placement begin.
        gpus: That each such actor is to reserve.
        cpus: Likewise.

    Raises:
        UserError: No node is large enough.
    """
    import ray

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]  # Ray leaves it so
    for what, needed in (("GPU", gpus), ("CPU", cpus)):
        most = max((node.get(what, 0.0) for node in nodes), default=0.0)
        if needed > most:
            raise UserError(
                f"each {kind} is to reserve {needed:g} {what}, and no node of the Ray cluster has"
                f" more than {most:g} (`ray status`): lower {kind}_{what.lower()}s, or add such a"
                " node (one at least has to be there before the run, also where the cluster grows"
                " by itself)"
            )
