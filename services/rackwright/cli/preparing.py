"""Making a cell ready on a bus that is there: streams, ledger, racks. Run again it does no harm."""

import hashlib
from collections.abc import Sequence

from rackwright.agent.config import FleetNode
from rackwright.bus.jetstream import JetStreamBus
from rackwright.host.create import create_ledger
from rackwright.wire.codec import encode
from rackwright.wire.ids import CellName, MessageId, Owner
from rackwright.wire.message import Envelope
from rackwright.wire.nodes import RackSpec
from rackwright.wire.policy import Policy
from rackwright.wire.subjects import Subjects
from rackwright.wire.wishes import DefineRacks

RACKS_A_WISH = 16


async def prepare(
    bus: JetStreamBus, policy: Policy, racks: Sequence[RackSpec], owner: str, source: str
) -> bool:
    """Streams, ledger and racks, as an administrator; was the ledger made now?

    Racks that are known already are refused and that is all. Raises what the bus raises.
    """
    await bus.ensure()
    made = await create_ledger(bus, policy)
    subject = Subjects(CellName(bus.cell)).wish(Owner(owner), DefineRacks.TYPE)
    for start in range(0, len(racks), RACKS_A_WISH):
        body = DefineRacks(racks=tuple(racks[start : start + RACKS_A_WISH]))
        mark = hashlib.sha256(repr(body).encode()).hexdigest()[:16]
        wish = Envelope(
            id=MessageId(f"define-{mark}"),
            type=DefineRacks.TYPE,
            v=1,
            at=0.0,
            source=source,
            cell=CellName(bus.cell),
            body=body,
        )
        await bus.wishes.publish(subject, encode(wish))
    return made


def deal(
    racks: Sequence[RackSpec], processes: int, solo: frozenset[str] = frozenset()
) -> list[list[FleetNode]]:
    """Virtual nodes by agent process: `solo` ones first, then racks dealt out to `processes`."""
    alone: list[list[FleetNode]] = []
    shared: list[list[FleetNode]] = [[] for _ in range(processes)]
    for turn, rack in enumerate(racks):
        for node in rack.nodes:
            one = FleetNode(node=node, rack=rack.rack, gpus=rack.gpus_per_node)
            if node in solo:
                alone.append([one])
            elif shared:
                shared[turn % len(shared)].append(one)
    return [group for group in (*alone, *shared) if group]
