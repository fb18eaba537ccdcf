"""Worker processes on a Ray cluster, which actors start; the only package to import ray.

Start with `workers`; `cluster` connects to Ray and checks its capacity.
"""
