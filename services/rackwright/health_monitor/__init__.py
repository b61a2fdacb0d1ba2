"""The health-monitor: hears nodes, names culprits, echoes leases; decides node and rack fitness.

`machine` is its mind; `beats` who was heard when, `blame` faults, `silence` leases, `returns` the
way back, `orders` what operators wish, `rounds` which entry is offered next.
"""
