"""Metrics that ask the reader with the role `judge`; their scores are not official."""
