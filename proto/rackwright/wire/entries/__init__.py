"""All entries of the ledger, by noun, and the table of them by type name."""

from rackwright.wire.entries.cell import CELL_ENTRIES
from rackwright.wire.entries.job import JOB_ENTRIES
from rackwright.wire.entries.node import NODE_ENTRIES
from rackwright.wire.entries.slice import SLICE_ENTRIES
from rackwright.wire.message import Entry

ENTRIES: dict[str, type[Entry]] = {
    entry.TYPE: entry for entry in (*CELL_ENTRIES, *JOB_ENTRIES, *NODE_ENTRIES, *SLICE_ENTRIES)
}
