"""Fourier transforms: a transform in each lane of the vectors, one pass of butterflies after the other."""
