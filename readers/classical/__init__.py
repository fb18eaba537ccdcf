"""Models of scikit-learn, and their features.

It is imported only for readers with such a model. Begin with `saved_model`, which saves and loads
models; `Classifier` uses `ngrams`, `PairClassifier` uses `pair_features` and `stylometry`.
"""
