"""Retrievers with encoders of their own kind: token vectors, late chunks, sparse vectors."""
