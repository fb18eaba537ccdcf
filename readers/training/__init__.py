"""Fine-tuning of readers' models with transformers' Trainer.

Only `train` imports it, by name, so that changes here do not change the signature of readers and
runs. Begin with `fine_tuning`.
"""
