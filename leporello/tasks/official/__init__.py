"""Shared code of benchmarks with official files; begin with `benchmark`."""
