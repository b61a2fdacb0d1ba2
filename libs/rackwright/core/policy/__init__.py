"""Policies: pure functions over a fleet that answer which, whether and why."""
