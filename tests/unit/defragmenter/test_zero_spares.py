"""A slice leaves a rack without spares, when the defragmenter hears that its job has saved."""

from rackwright.wire.entries.cell import AutomationPaused
from rackwright.wire.ids import Owner
from rackwright.wire.jobs import Checkpoint
from rackwright.wire.policy import Automation
from tests.support.fleets import cell
from tests.unit.core.policy.defrag_cells import HOUR, pass_time
from tests.unit.defragmenter.driver import Driver, offer, types, with_policy


def bare_rack() -> Driver:
    """Job a has used up the spares of its rack, for good, and saved just now."""
    made = cell(2, sound=False)
    saves = Checkpoint(interval_s=1800.0)
    made.sit("a", "r0", range(16), checkpoint=saves, time_limit_s=30 * 24 * HOUR)
    for place in (16, 17):
        made.unfit(f"r0-n{place}")
    pass_time(made, 25 * HOUR)
    driver = Driver(made=made)
    driver.all_run("a", checkpoint=made.fleet.time)
    return driver


def test_a_slice_leaves_a_rack_without_spares_after_its_checkpoint() -> None:
    driver = bare_rack()
    move = offer(driver.turn())
    assert types([move]) == ["slice.moved"]
    driver.commit(move)
    assert types(driver.turn()) == []


def test_it_stays_while_plans_are_paused_or_need_approval() -> None:
    driver = bare_rack()
    with_policy(driver, defrag_approve=True)
    assert types(driver.turn()) == []
    driver = bare_rack()
    until = driver.now + HOUR
    driver.fold(AutomationPaused(automation=Automation.DEFRAG, until=until, by=Owner("op")))
    assert types(driver.turn()) == []
