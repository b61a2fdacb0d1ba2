"""The simulator: what a policy makes of a workload and its failures, in virtual time.

`workload`, `readers`, `generator` and `mixture` say what is asked for, `failures` what breaks,
`speed` how fast placed work runs. The machines of the cell decide; nothing here does it for them.
"""
