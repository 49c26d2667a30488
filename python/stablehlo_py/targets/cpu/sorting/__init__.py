"""sort and top_k: slices as words, networks for short ones, digits for long ones."""
