"""Metrics that ask a reader, the one of role `judge`: opinions, and no official scores."""
