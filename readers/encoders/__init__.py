"""Transformers models that classify, mark spans, fill masks or embed."""
