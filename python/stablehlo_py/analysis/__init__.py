"""What can be said of a program without running it."""
