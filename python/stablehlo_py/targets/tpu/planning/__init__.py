"""What is decided before a kernel is written: layouts, block sizes, groups of ops, and the boxes of a move."""
