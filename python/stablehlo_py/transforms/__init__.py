"""Passes, one a file; the file's stem is the pass's name."""
