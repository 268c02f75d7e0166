"""An evaluator, a backend, an export and a format of eval sets outside the package."""
