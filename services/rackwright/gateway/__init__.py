"""The gateway: answers questions about the fleet, decides nothing.

`machine` hears commits and status; `chronicle` keeps what happened to each job and node; `answers`
are pure functions from the fleet to `views`; `desk` gives them out over NATS and HTTP.
"""
