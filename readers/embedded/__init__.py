"""Small models of the package: encoders and weights, and the scores of their answers."""
