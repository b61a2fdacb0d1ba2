"""The spare-manager: hears commits, decides the recovery ladder for wounded slices.

`machine` is its mind, `grouping` puts what it decided into offers. The ladder itself is policy:
`rackwright.core.policy.spares`.
"""
