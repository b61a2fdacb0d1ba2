"""The defragmenter: hears commits and nodes' status, moves work for a job that topology blocks.

`machine` is its mind, `state` what it remembers, `seen` what nodes have said. What pays and where
victims go is policy: `rackwright.core.policy.defrag`.
"""
