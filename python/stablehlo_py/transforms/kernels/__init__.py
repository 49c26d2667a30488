"""From @main to kernels and their Program: which ops go together, each kernel to linalg and buffers, the commands for them."""
