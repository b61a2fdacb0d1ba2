"""What makes a machine live in a process: it follows the ledger, hears, waits, and obeys effects.

Start with `service.run_service`, then read `runner`; the rest are its parts.
"""
