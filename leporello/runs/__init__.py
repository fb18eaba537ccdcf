"""Implements the verbs that execute: run, plan, ask, watch.

This room may import all rooms before it. Begin with `run`, then `job_group`, which uses executors.
"""
