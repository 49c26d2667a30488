"""StableHLO in, Python-defined passes on the upstream MLIR bindings, native code out."""
