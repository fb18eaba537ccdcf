"""Backends, the libraries that run models; begin with `backend`.

They handle tokens, not a `Read`; transformers is the reference for the others.
"""
