"""Exports finished runs for other programs: Parquet tables, TREC files, leaderboards."""
