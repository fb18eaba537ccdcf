"""Transformers models that classify, mark spans, fill masks or embed.

Readers in the parent folder use them; `backends.pretrained` loads them. Begin with
`batched_model`.
"""
