"""The node agent: starts and stops the workers of its node, reports what it sees, decides nothing.

Modules that a worker supervisor imports (`linux`, `processes`, `lease`, `output`,
`supervisor`, `forkserver`) use only what starts fast: no dataclasses, no json, no asyncio.
"""
