"""The hardware that programs run on, as data with its sources."""
