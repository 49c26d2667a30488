"""Kernels of the mxu dialect: what a planned product, a group of vector ops or a move becomes, transfer by transfer."""
