"""What the tools say to the shell."""

FINE = 0
BAD_INPUT = 1  # an error in the input
BAD_USAGE = 2
MISMATCH = 3  # results that do not agree
