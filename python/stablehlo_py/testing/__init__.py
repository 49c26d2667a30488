"""Random programs, damaged inputs, a child process that runs them, and a reducer: what tools/fuzz.py is made of."""
