"""Models of scikit-learn, and their features; imported only for readers with such a model."""
