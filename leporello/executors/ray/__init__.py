"""Workers on a Ray cluster, each a process beside an actor; the only place that imports ray.

Begin with `workers`; `environment` is what travels to them.
"""
