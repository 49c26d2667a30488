"""From kernels on tensors to what a machine runs; the targets do not know each other."""
