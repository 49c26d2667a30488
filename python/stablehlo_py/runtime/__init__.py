"""What a compiled program needs to run: the Program, its memory plan and its executors; no compiler imports."""
