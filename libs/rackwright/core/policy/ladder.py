"""The recovery ladder for one wounded slice: rung after rung, each judged at once, with its price.

A rung that is not possible costs no time. Every rung down to the one that is taken is recorded with
its reason, its numbers and its price in GPU-hours (weighted by priority, as the victims' are).
Shrinking an elastic job and waiting for a known release are no rungs yet, so they are not recorded.
"""

from collections.abc import Callable, Sequence
from functools import partial

from rackwright.core.jobs import Wound, WoundKind
from rackwright.core.legality.seats import node_keeps
from rackwright.core.policy.draft import Seat
from rackwright.core.policy.moves import cleared_seat, free_seat, pays
from rackwright.core.policy.prices import requeue_price, stall
from rackwright.core.policy.replacements import Case, better_left
from rackwright.core.policy.victims import (
    Victims,
    cheapest,
    may_evict,
    may_take_back,
    removable,
)
from rackwright.core.racks import Tenancy
from rackwright.wire.entries.job import JobRequeued
from rackwright.wire.entries.slice import NodeSwap, SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.reasons import Reason, Rung, RungTaken

Healing = SliceSwapped | SliceMoved | SliceRestarted | JobRequeued

START_TIMEOUT = "start-timeout"
"""Reason code of `worker.failed` for a rank that did not start within `swap_start_s`, its gates
being open: its node has failed the job, whatever else is said of it."""


class Climb:
    """The decision on one slice. `leave` must go elsewhere, `drained` should, `restart` stays."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.rungs: list[RungTaken] = []
        self.restart = [wound for wound in case.wounds if _restarts(case, wound)]
        self.drained = [wound for wound in case.wounds if wound.kind is WoundKind.DRAIN]
        kept = {wound.rank for wound in (*self.restart, *self.drained)}
        self.leave = [wound for wound in case.wounds if wound.rank not in kept]
        self._seat: Seat | None = None
        self._looked = False

    def entries(self) -> list[Healing]:
        """What is to be done; nothing if a drained slice has no better place yet."""
        self._judge_restart()
        if not self.leave and not self.drained:
            return [self._restarted()]
        found = self._stay_or_move()
        if found:
            return found
        return self._last_resorts() if self.leave else self._restarted_only()

    def stays_possible(self) -> bool:
        """Could it be healed by free spares of its rack?"""
        wanted = len(self.leave) or min(1, len(self.drained))
        return len(self.case.spares) >= wanted and better_left(self.case) is None

    def _stay_or_move(self) -> list[Healing]:
        avoid = better_left(self.case)
        if avoid is None:
            return self._in_rack() or self._move()
        code, never = avoid
        self._skip(Rung.SPARE, code, self._swap_price())
        return self._move() or ([] if never else self._in_rack())

    def _restarted_only(self) -> list[Healing]:
        return [self._restarted()] if self.restart else []

    # Recording

    def _note(
        self, rung: Rung, taken: bool, code: str, price: float | None, **numbers: int | float | str
    ) -> None:
        why = Reason(code=code, numbers=numbers)
        cost = None if price is None else round(price, 3)
        self.rungs.append(RungTaken(rung=rung, taken=taken, price_gpu_h=cost, reason=why))

    def _skip(
        self, rung: Rung, code: str, price: float | None = None, **numbers: int | float | str
    ) -> None:
        self._note(rung, False, code, price, **numbers)

    def _take(self, rung: Rung, code: str, price: float, **numbers: int | float | str) -> None:
        self._note(rung, True, code, price, **numbers)

    # Rung 0: restart in place

    def _judge_restart(self) -> None:
        price = stall(self.case.fleet, self.case.job, self.case.fleet.policy.restart_in_place_s)
        if self.restart:
            codes = ",".join(sorted({wound.code for wound in self.restart}))
            self._take(Rung.RESTART, "process", price, ranks=len(self.restart), codes=codes)
        away = [*self.leave, *self.drained]
        if away:
            codes = ",".join(sorted({wound.code for wound in away}))
            self._skip(Rung.RESTART, "node", price, ranks=len(away), codes=codes)

    def _restarted(self) -> SliceRestarted:
        """In the state after the entries before it: the caller numbers memberships."""
        case = self.case
        return SliceRestarted(
            job=case.job.id,
            membership=case.job.membership + 1,
            index=case.part.index,
            ranks=tuple(wound.rank for wound in self.restart),
            charge=any(wound.charge for wound in self.restart),
            rungs=tuple(one for one in self.rungs if one.rung is Rung.RESTART and one.taken),
        )

    # Rungs 1 to 3: another node of the same rack

    def _swap_price(self) -> float:
        return stall(self.case.fleet, self.case.job, self.case.fleet.policy.swap_cost_s)

    def _in_rack(self) -> list[Healing]:
        if self.case.part.gpus:
            self._skip(Rung.SPARE, "part-of-node")
            return []
        return self._free_spare() or self._lent_spare() or self._tenant()

    def _free_spare(self) -> list[Healing]:
        spares = self.case.spares
        wanted = len(self.leave) or min(1, len(self.drained))
        price = self._swap_price()
        numbers = {"free": len(spares), "needed": wanted}
        if len(spares) < wanted:
            self._skip(Rung.SPARE, "spares.short" if spares else "spares.none", price, **numbers)
            return []
        self._take(Rung.SPARE, "spare", price, **numbers)
        return self._swap([*self.leave, *self.drained], spares, Victims())

    def _lent_spare(self) -> list[Healing]:
        case, fleet = self.case, self.case.fleet
        short = max(1, len(self.leave) - len(case.spares))

        def may(tenancy: Tenancy) -> bool:
            return tenancy.lent and may_take_back(fleet, fleet.jobs[tenancy.job])

        if case.small:
            self._skip(Rung.LENT_SPARE, "small")
            return []

        victims = self._victims(short, 0.0, may)
        if victims is None:
            self._skip(Rung.LENT_SPARE, "lent.none", None, needed=short)
            return []
        self._take(
            Rung.LENT_SPARE,
            "lent",
            self._swap_price() + victims.loss,
            needed=short,
            evicted=len(victims.jobs),
            loss_gpu_h=round(victims.loss, 3),
        )
        return self._evicting_swap(victims)

    def _tenant(self) -> list[Healing]:
        case, fleet = self.case, self.case.fleet
        if not self.leave:
            self._skip(Rung.TENANT, "drain.waits")
            return []
        short = len(self.leave) - len(case.spares)
        notice = fleet.policy.recovery_notice_s

        def may(tenancy: Tenancy) -> bool:
            victim = fleet.jobs[tenancy.job]
            if tenancy.lent:
                return not case.small and may_take_back(fleet, victim)
            return may_evict(fleet, victim, case.job, case.now)

        victims = self._victims(short, notice, may)
        if victims is None:
            self._skip(Rung.TENANT, "tenants.none", None, needed=short)
            return []
        price = self._swap_price() + victims.loss + self._notice(victims)
        other = self._price_without_tenant()
        numbers = {
            "needed": short,
            "evicted": len(victims.jobs),
            "loss_gpu_h": round(victims.loss, 3),
            "other_gpu_h": round(other, 3),
        }
        if price >= other:
            self._skip(Rung.TENANT, "tenants.dear", price, **numbers)
            return []
        self._take(Rung.TENANT, "tenant", price, **numbers)
        return self._evicting_swap(victims)

    def _victims(
        self, needed: int, notice_s: float, may: Callable[[Tenancy], bool]
    ) -> Victims | None:
        """Nobody is evicted for work that itself sits on lent spares."""
        case = self.case
        if case.part.lent:
            return None
        mine = case.job.id

        def others(tenancy: Tenancy) -> bool:
            return tenancy.job != mine and may(tenancy)

        fits = case.fits & ~case.rack.free
        pieces = removable(case.fleet, case.rack, fits, case.now, notice_s, others)
        return cheapest(pieces, needed, case.fleet.policy.defrag_max_victims)

    def _notice(self, victims: Victims) -> float:
        """What the job stands still for while its victims save."""
        fleet = self.case.fleet
        jobs = [fleet.jobs[name] for name in victims.jobs]
        saving = max((job.spec.checkpoint.on_notice_s or 0.0 for job in jobs), default=0.0)
        return stall(fleet, self.case.job, min(fleet.policy.recovery_notice_s, saving))

    def _price_without_tenant(self) -> float:
        if self._elsewhere() is not None:
            return self._move_price()
        return self._requeue_price()

    def _evicting_swap(self, victims: Victims) -> list[Healing]:
        places = (*self.case.spares, *sorted(victims.places))
        return self._swap(self.leave or self.drained, places, victims)

    def _swap(
        self, wounds: Sequence[Wound], places: Sequence[int], victims: Victims
    ) -> list[Healing]:
        """As many as there are places for, then those that start again where they are."""
        case = self.case
        swapped = SliceSwapped(
            job=case.job.id,
            membership=case.job.membership + 1,
            index=case.part.index,
            swaps=tuple(
                NodeSwap(rank=wound.rank, old=case.place_of(wound.rank), new=place)
                for wound, place in zip(wounds, places, strict=False)
            ),
            evicted=victims.jobs,
            rungs=self._climbed(),
        )
        return [swapped, *self._restarted_only()]

    def _climbed(self) -> tuple[RungTaken, ...]:
        """The restart in place beside it is another entry, with a rung of its own."""
        return tuple(one for one in self.rungs if one.rung is not Rung.RESTART or not one.taken)

    # Rungs 4 and 5: another rack

    def _move_price(self) -> float:
        return stall(self.case.fleet, self.case.job, self.case.fleet.policy.move_cost_s)

    def _elsewhere(self) -> Seat | None:
        if not self._looked:
            self._looked = True
            self._seat = free_seat(self.case)
        return self._seat

    def _move(self) -> list[Healing]:
        seat = self._elsewhere()
        size = self.case.part.size
        if seat is None:
            self._skip(Rung.FREE_RACK, "racks.none", self._move_price(), nodes=size)
            return []
        rack = self.case.fleet.rack_name(seat.rack)
        self._take(Rung.FREE_RACK, "free-rack", self._move_price(), nodes=size, rack=rack)
        return [self._moved(seat, Victims())]

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
            rungs=self._climbed(),
        )

    def _last_resorts(self) -> list[Healing]:
        return self._evict() or [self._requeued()]

    def _evict(self) -> list[Healing]:
        case = self.case
        size = case.part.size
        if case.part.gpus or case.part.lent:
            self._skip(Rung.EVICT, "lent" if case.part.lent else "part-of-node")
            return []
        cleared = cleared_seat(case)
        if cleared is None:
            self._skip(Rung.EVICT, "victims.none", None, nodes=size)
            return []
        victims = cleared.victims
        price = self._move_price() + victims.loss + self._notice(victims)
        note = partial(
            self._note,
            rung=Rung.EVICT,
            price=price,
            rack=case.fleet.rack_name(cleared.seat.rack),
            evicted=len(victims.jobs),
            loss_gpu_h=round(victims.loss, 3),
        )
        if not pays(case, victims):
            note(taken=False, code="victims.dear")
            return []
        note(taken=True, code="evict")
        return [self._moved(cleared.seat, victims)]

    # Rung 8: the queue

    def _requeue_price(self) -> float:
        """No rack is free, so it waits; nobody knows how long, W0 is what a wait counts for."""
        case = self.case
        wait = case.fleet.policy.defrag_wait0_s
        return requeue_price(case.fleet, case.job, case.now, wait)

    def _requeued(self) -> JobRequeued:
        case = self.case
        self._take(Rung.REQUEUE, "no-place", self._requeue_price(), nodes=case.job.ranks)
        return JobRequeued(
            job=case.job.id,
            reason=Reason(code="no-place", numbers={"slice": case.part.index}, rung=Rung.REQUEUE),
            rungs=self._climbed(),
        )


def _restarts(case: Case, wound: Wound) -> bool:
    """Is only the process gone, and its node as good as before?"""
    if wound.kind is not WoundKind.PROCESS or wound.code == START_TIMEOUT:
        return False
    return node_keeps(case.node_of(wound.rank), case.need) is None
