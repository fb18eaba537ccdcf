"""Fine-tuning of readers' models by transformers' Trainer; imported by name, and by `train` only.

So a change here changes no reader, and no run. Begin with `fine_tuning`, which makes examples, and
`trainer`, which learns from them.
"""
