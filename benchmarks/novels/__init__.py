"""Questions on whole novels, with the passages that answer them."""
