"""Retrievers with special encoders: token vectors, late chunking, sparse vectors."""
