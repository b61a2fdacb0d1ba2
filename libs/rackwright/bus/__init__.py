"""How Rackwright talks: ports for each kind of message, on JetStream or in memory.

The bus carries bytes on subjects and decodes nothing. `ports` says what every bus promises,
`jetstream` and `memory` keep the promises, `embedded` starts a server of one's own.
"""
