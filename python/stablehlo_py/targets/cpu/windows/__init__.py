"""Convolutions: how one is cut into register tiles, the image that a step reads, and the loops around them."""
