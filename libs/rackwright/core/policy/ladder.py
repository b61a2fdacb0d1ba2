"""The recovery ladder for one wounded slice: rung after rung, each judged at once, with its price.

A rung that is not possible costs no time. Every rung down to the one that is taken is recorded;
while a job waits for a known release nothing is said, and what follows is judged anew.
"""

from dataclasses import replace
from functools import cached_property

from rackwright.core.policy.beside import Healing, beside, moves_beside
from rackwright.core.policy.draft import Seat
from rackwright.core.policy.elastic import (
    goes_on_without,
    replica_of,
    replica_price,
    shrink_price,
)
from rackwright.core.policy.moves import Cleared, cleared_seat, free_seat, lent_rack, pays
from rackwright.core.policy.neighbours import Swap, in_rack, notice_price, swap_price
from rackwright.core.policy.prices import requeue_price, stall
from rackwright.core.policy.replacements import Case
from rackwright.core.policy.rungs import Number, Record
from rackwright.core.policy.triage import better_left, triage
from rackwright.core.policy.turns import gives_up
from rackwright.core.policy.victims import Victims
from rackwright.core.policy.waiting import patience_until, release_for
from rackwright.wire.entries.job import JobRequeued, JobShrunk
from rackwright.wire.entries.slice import NodeSwap, SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.reasons import Reason, Rung


class Climb:
    """The decision on one slice. Memberships follow the case's job: the caller numbers on."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.triage = triage(case)
        self.record = Record()

    def entries(self) -> list[Healing]:
        """What is to be done; nothing if a drained slice has no better place yet."""
        self._judge_restart()
        if not self.triage.away:
            return self._restarted()
        found = self._beside() if self._serves_on else self._stay_or_move()
        if found:
            return found
        return self._last_resorts() if self.triage.leave else self._stays()

    def _stays(self) -> list[Healing]:
        """Drained and no better place: nobody is stopped for it, unless maintenance is near."""
        case = self.case
        window = gives_up(case.fleet, case.job, case.part, case.now)
        if window is None:
            return self._restarted()
        numbers: dict[str, Number] = {"begin_s": round(window.begin - case.now, 3)}
        self.record.take(Rung.REQUEUE, "maintenance", self._requeue_price(), **numbers)
        indexes = replica_of(case.job, case.part)
        return [self._gone(indexes, Reason(code="maintenance", numbers=numbers))]

    def stays_possible(self) -> bool:
        """Could it be healed by free spares of its rack?"""
        return len(self.case.spares) >= self.triage.needed and better_left(self.case) is None

    def _stay_or_move(self) -> list[Healing]:
        avoid = better_left(self.case)
        if avoid is None:
            return self._in_rack() or self._move()
        code, never = avoid
        self.record.skip(Rung.SPARE, code, swap_price(self.case))
        return self._move() or ([] if never else self._in_rack())

    # A movable service on drained nodes: the new instance before the old one goes

    @property
    def _serves_on(self) -> bool:
        """Is all that is wrong with a movable service's slice that it should leave? One that has
        not been up yet serves nobody, and could begin after its successor."""
        job, wounds = self.case.job, self.triage
        serves = moves_beside(job) and job.has_been_up(self.case.part)
        return serves and not (wounds.leave or wounds.restart)

    def _beside(self) -> list[Healing]:
        """As a whole, to nodes that are free now; else it stays until there are such."""
        case = self.case
        whole = len(self.triage.drained) == case.part.size <= len(case.spares)
        found = self._in_rack() if whole and better_left(case) is None else self._move()
        return [one for entry in found if (one := beside(case.fleet, entry)) is not None]

    # Rung 0: restart in place

    def _judge_restart(self) -> None:
        case, wounds = self.case, self.triage
        price = stall(case.fleet, case.job, case.fleet.policy.restart_in_place_s)
        if wounds.restart:
            codes = ",".join(sorted({wound.code for wound in wounds.restart}))
            ranks = len(wounds.restart)
            self.record.take(Rung.RESTART, "process", price, ranks=ranks, codes=codes)
        if wounds.away:
            codes = ",".join(sorted({wound.code for wound in wounds.away}))
            ranks = len(wounds.away)
            self.record.skip(Rung.RESTART, "node", price, ranks=ranks, codes=codes)

    def _restarted(self) -> list[Healing]:
        case, wounds = self.case, self.triage.restart
        if not wounds:
            return []
        entry = SliceRestarted(
            job=case.job.id,
            membership=case.job.membership + 1,
            index=case.part.index,
            ranks=tuple(wound.rank for wound in wounds),
            charge=any(wound.charge for wound in wounds),
            rungs=self.record.restarted,
        )
        return [entry]

    # Rungs 1 to 3: another node of the same rack

    def _in_rack(self) -> list[Healing]:
        swap = in_rack(self.case, self.triage, self.record, self._price_without_tenant)
        return [] if swap is None else [self._swapped(swap), *self._restarted()]

    def _price_without_tenant(self) -> float:
        if self._elsewhere is not None or self._lent_rack is not None:
            return self._move_price()
        case = self.case
        if goes_on_without(case.job, case.part) is None:
            return min(self._requeue_price(), shrink_price(case.fleet, case.job, case.part))
        return self._requeue_price()

    def _swapped(self, swap: Swap) -> SliceSwapped:
        case = self.case
        return SliceSwapped(
            job=case.job.id,
            membership=case.job.membership + 1,
            index=case.part.index,
            swaps=tuple(
                NodeSwap(rank=wound.rank, old=case.place_of(wound.rank), new=place)
                for wound, place in zip(swap.wounds, swap.places, strict=False)
            ),
            evicted=swap.victims.jobs,
            rungs=self.record.climbed,
        )

    # Rungs 4 and 5: another rack

    @cached_property
    def _elsewhere(self) -> Seat | None:
        return free_seat(self.case)

    @cached_property
    def _lent_rack(self) -> Cleared | None:
        return lent_rack(self.case)

    def _move_price(self) -> float:
        return stall(self.case.fleet, self.case.job, self.case.fleet.policy.move_cost_s)

    def _move(self) -> list[Healing]:
        seat, size = self._elsewhere, self.case.part.size
        if seat is None:
            return self._take_back(size)
        rack = self.case.fleet.rack_name(seat.rack)
        self.record.take(Rung.FREE_RACK, "free-rack", self._move_price(), nodes=size, rack=rack)
        return [self._moved(seat, Victims())]

    def _take_back(self, size: int) -> list[Healing]:
        """A spare rack of the cell that is lent."""
        lent = self._lent_rack
        if lent is None:
            self.record.skip(Rung.FREE_RACK, "racks.none", self._move_price(), nodes=size)
            return []
        self.record.take(
            Rung.FREE_RACK,
            "lent-rack",
            self._move_price() + lent.victims.loss,
            nodes=size,
            rack=self.case.fleet.rack_name(lent.seat.rack),
            evicted=len(lent.victims.jobs),
        )
        return [self._moved(lent.seat, lent.victims)]

    def _moved(self, seat: Seat, victims: Victims) -> SliceMoved:
        case = self.case
        return SliceMoved(
            job=case.job.id,
            membership=case.job.membership + 1,
            index=case.part.index,
            rack=case.fleet.rack_name(seat.rack),
            nodes=seat.nodes,
            gpus=seat.gpus,
            lent=seat.lent,
            evicted=victims.jobs,
            rungs=self.record.climbed,
        )

    def _last_resorts(self) -> list[Healing]:
        found = self._evict() or self._shrunk()
        return found or ([] if self._waits() else [self._requeued()])

    def _evict(self) -> list[Healing]:
        case, record = self.case, self.record
        if case.part.gpus or case.part.lent:
            record.skip(Rung.EVICT, "small" if case.part.lent else "part-of-node")
            return []
        cleared = cleared_seat(case)
        if cleared is None:
            record.skip(Rung.EVICT, "victims.none", None, nodes=case.part.size)
            return []
        victims = cleared.victims
        price = self._move_price() + victims.loss + notice_price(case, victims)
        numbers: dict[str, Number] = {
            "rack": case.fleet.rack_name(cleared.seat.rack),
            "evicted": len(victims.jobs),
            "loss_gpu_h": round(victims.loss, 3),
        }
        if not pays(case, victims):
            record.skip(Rung.EVICT, "victims.dear", price, **numbers)
            return []
        record.take(Rung.EVICT, "evict", price, **numbers)
        return [self._moved(cleared.seat, victims)]

    # Rung 6: go on with fewer slices

    def _shrunk(self) -> list[Healing]:
        case, record = self.case, self.record
        why = goes_on_without(case.job, case.part)
        left, least = len(case.job.slices) - 1, case.job.spec.min_slices
        if why is not None and least is None:
            record.skip(Rung.SHRINK, why)
            return []
        price = shrink_price(case.fleet, case.job, case.part)
        numbers: dict[str, Number] = {"left": left, "min_slices": least or 1}
        if why is not None:
            record.skip(Rung.SHRINK, why, price, **numbers)
            return []
        record.take(Rung.SHRINK, "shrink", price, **numbers)
        return [self._gone((case.part.index,), Reason(code="shrunk", numbers=numbers))]

    def _gone(self, indexes: tuple[int, ...], reason: Reason) -> JobShrunk:
        job = self.case.job
        rung = Rung.REQUEUE if job.spec.groups else Rung.SHRINK
        return JobShrunk(
            job=job.id,
            membership=job.membership + 1,
            indexes=indexes,
            reason=replace(reason, rung=rung),
            rungs=self.record.climbed,
        )

    # Rung 7: wait for what is known to come free

    def _waits(self) -> bool:
        case = self.case
        price = stall(case.fleet, case.job, max(0.0, patience_until(case) - case.now))
        if release_for(case) is not None:
            return True
        self.record.skip(Rung.WAIT, "release.none", price, nodes=case.part.size)
        return False

    # Rung 8: the queue

    def _requeue_price(self) -> float:
        """No rack is free, so it waits; nobody knows how long, W0 is what a wait counts for."""
        case = self.case
        alone = replica_of(case.job, case.part)
        if alone:
            return replica_price(case.fleet, case.job, alone)
        wait = case.fleet.policy.defrag_wait0_s
        return requeue_price(case.fleet, case.job, case.now, wait)

    def _requeued(self) -> JobRequeued | JobShrunk:
        """A replica of a service goes alone, the others serve on."""
        case = self.case
        alone = replica_of(case.job, case.part)
        if alone:
            nodes = sum(part.size for part in case.job.slices if part.index in alone)
            self.record.take(Rung.REQUEUE, "no-place", self._requeue_price(), nodes=nodes)
            numbers: dict[str, Number] = {
                "replica": case.part.replica,
                "group": case.job.spec.groups[case.part.group].name,
            }
            return self._gone(alone, Reason(code="replica.no-place", numbers=numbers))
        self.record.take(Rung.REQUEUE, "no-place", self._requeue_price(), nodes=case.job.ranks)
        return JobRequeued(
            job=case.job.id,
            reason=Reason(code="no-place", numbers={"slice": case.part.index}, rung=Rung.REQUEUE),
            rungs=self.record.climbed,
        )
