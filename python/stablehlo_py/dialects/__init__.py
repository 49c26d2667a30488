"""Typed views over StableHLO, and the dialects that are defined here."""
