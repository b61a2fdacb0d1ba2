"""The dispatcher: projects the fleet into what agents read, and keeps verified snapshots."""
