"""Exact rewrites of StableHLO: folded, hoisted, put in a cheaper form."""
