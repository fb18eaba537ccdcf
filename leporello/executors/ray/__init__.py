"""Workers on a Ray cluster, each a process that an actor starts; the only package to import ray.

Start with `workers`; `environment` defines the files and variables that are sent to them.
"""
