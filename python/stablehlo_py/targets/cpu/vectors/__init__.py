"""Plain loops as loops over vectors: what may become one, what pays, the loops, their bodies, and functions as polynomials."""
