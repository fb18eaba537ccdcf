"""Transformers' models that classify, mark spans, fill masks or embed.

Each has the readers that use it above, and loads by `backends.pretrained`. Begin with
`batched_model`.
"""
