"""Pretends: virtual time, a ledger and processes on it, by the rules that live processes keep.

The kernel of the simulator that users run and of the fault-injection tests. An `Engine` has the
time, the chance and the heap of what is to happen; a `SimLedger` stores and folds commits once for
everybody; a `Process` is one machine with its own view of it, stepped by the same `host.mind` as a
live one. Without a `Path` everything arrives at once: one commit then costs one fold.
"""
