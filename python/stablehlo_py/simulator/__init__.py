"""Runs mxu programs: for their values, and for the time that they would take."""
