"""Live cells whose processes, server and disk fail while they work; checked after each failure."""
