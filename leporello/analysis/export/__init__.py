"""What other programs read of a run: tables, TREC's files, leaderboards' CSVs, trackers.

It reads finished runs and changes nothing in them. Begin with `formats`.
"""
