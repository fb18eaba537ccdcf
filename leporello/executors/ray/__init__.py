"""Worker processes on a Ray cluster, which actors start; the only package to import ray.

Start with `workers`; `environment` defines the files and variables that are sent to them.
"""
