"""The whole system live on an embedded bus, real processes; a package that shares one cell."""
