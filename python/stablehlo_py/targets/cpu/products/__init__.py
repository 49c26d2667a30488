"""Sums of products: packed operands, register tiles, and what is done to the sums before they are stored."""
