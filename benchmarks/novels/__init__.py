"""Questions on complete novels, with the passages that answer them."""
