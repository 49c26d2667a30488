"""The TPU-like target: products become mxu kernels; the rest stays with the host. A model: nothing here ran on a TPU."""
