"""What is measured: each module prints rows of {"name", "params", "value", "unit"}."""
