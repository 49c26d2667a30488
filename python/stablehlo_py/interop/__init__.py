"""Programs from JAX and PyTorch; their packages are imported only where a function needs them."""
