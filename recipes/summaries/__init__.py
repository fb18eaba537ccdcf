"""How the weights of summaries were fitted: documents with summaries, ridge regression, a file.

Begin with `recipe`.
"""
