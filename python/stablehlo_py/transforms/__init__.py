"""Passes, one a file, in folders by what they do; the file's stem is the pass's name, wherever it lies."""
