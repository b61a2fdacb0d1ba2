"""The spare-manager says less at once while others come first, and more when they do not."""

from rackwright.core.machine import Acked, Effect, Offer, Refused, Turn
from rackwright.spare_manager.machine import SpareManager
from rackwright.wire.policy import Policy
from tests.support.fleets import cell

MACHINE = SpareManager()


def test_while_others_come_first_it_offers_fewer_and_then_more_again() -> None:
    made = cell(40, policy=Policy(breaker_min=100))
    for number in range(40):
        made.sit(f"j{number:02d}", f"r{number}", range(16))
        made.unfit(f"r{number}-n03")
    now, turn = made.fleet.time, Turn(now=made.fleet.time, mono=10.0)
    state, effects = MACHINE.handle(MACHINE.start(0), made.fleet, turn)
    offered = [only(effects)]
    for _ in range(3):
        refused = Refused(now=now, mono=10.0, offer=offered[-1])
        state, effects = MACHINE.handle(state, made.fleet, refused)
        again = only(effects)
        assert again.entries == offered[-1].entries[: len(again.entries)]
        offered.append(again)
    made.add(*offered[-1].entries)
    for _ in range(2):
        acked = Acked(now=now, mono=10.0, sent_mono=9.9, seq=9)
        state, effects = MACHINE.handle(state, made.fleet, acked)
        assert effects == []
        state, effects = MACHINE.handle(state, made.fleet, turn)
        offered.append(only(effects))
        made.add(*offered[-1].entries)
    assert [len(one.entries) for one in offered] == [40, 20, 10, 8, 16, 16]
    assert not made.fleet.wounded


def only(effects: list[Effect]) -> Offer:
    """The one offer."""
    (offer,) = [one for one in effects if isinstance(one, Offer)]
    return offer
