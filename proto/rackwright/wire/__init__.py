"""What travels on the bus: ids, nouns, wishes, signals, status, entries, values, subjects, codec.

Everything here is a value. Nothing here decides, and only `codec` knows how bytes are made.
"""
