"""Differences between machines and installations: platforms, extras, plug-ins, limits.

Only this package names platforms and extras. Begin with `platform`.
"""
