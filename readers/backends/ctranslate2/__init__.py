"""Backend CTranslate2: models are converted once, and run in int8 or float32.

Only the registry imports it. Begin with `models`; `conversion` compares a converted model with the
original.
"""
