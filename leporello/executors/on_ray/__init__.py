"""The same run on a Ray cluster."""
