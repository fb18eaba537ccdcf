"""Exports finished runs for other programs: Parquet tables, TREC files, leaderboards, trackers.

It reads finished runs without changing them. Begin with `formats`.
"""
