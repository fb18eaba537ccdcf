"""Which of several pipelines does best on a question, learnt from a run of all of them."""
