"""What passes and rules stand on: types, the registry, pipelines, diagnostics."""
