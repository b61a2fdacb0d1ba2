"""The knobs of a cell. They are an entry (`policy.set`), so every copy decides with the same ones.

Each default is the one of the policy page; `doc` metadata (unit and reason) feeds the reference.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le

from rackwright.wire.ids import OwnerRef, QueueRef
from rackwright.wire.jobs import JobClass
from rackwright.wire.message import Counted, Natural, Part
from rackwright.wire.nodes import MAX_RACK_NODES


class Automation(StrEnum):
    """What an operator may pause. `all`: the cell is read only, nothing is decided in it."""

    PLACEMENT = "placement"
    SWAP = "swap"
    DEFRAG = "defrag"
    HEALTH = "health"
    ALL = "all"


def knob(default: Any, unit: str, why: str, **later: int) -> Any:
    """A field with its unit and the reason for its default; `since` a fold version, if later."""
    return field(default=default, metadata={"unit": unit, "why": why, **later})


def table(unit: str, why: str, **later: int) -> Any:
    """A field that holds a value by queue or owner, none by default."""
    return field(default_factory=dict, metadata={"unit": unit, "why": why, **later})


Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Priority = Annotated[int, Ge(0), Le(100)]
Share = Annotated[float, Gt(0), Le(1)]
SliceNodes = Annotated[int, Ge(1), Le(MAX_RACK_NODES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(Part):
    """All settings that decide something. Times in seconds unless the unit says otherwise."""

    slice_nodes: SliceNodes = knob(16, "nodes", "largest power of two that leaves two spares of 18")
    queue_slice_nodes: dict[QueueRef, SliceNodes] = table("nodes", "slice size of a queue")
    queue_classes: dict[QueueRef, tuple[JobClass, ...]] = table(
        "", "classes a queue takes; one that is not listed takes all"
    )
    queue_priority: dict[QueueRef, Priority] = table("", "highest priority a queue takes")
    queue_gpus: dict[QueueRef, Natural] = table("GPUs", "most a queue may have at once")
    queue_guarantee: dict[QueueRef, Natural] = table(
        "GPUs",
        "promised to a queue: others use them while it does not, and give way",
        since=2,
    )
    queue_pinned_gpus: dict[QueueRef, Natural] = table(
        "GPUs", "most that pinned work of a queue may have at once"
    )
    queue_lent_gpus: dict[QueueRef, Natural] = table(
        "GPUs", "most that a queue may have on lent spares at once"
    )
    cpu_only_queues: tuple[QueueRef, ...] = knob(
        (),
        "",
        "queues that take work without GPUs: it holds the cores of GPUs that then stand idle",
    )
    pinned_share: Share = knob(
        0.05, "of GPUs", "for pinned work of all queues: 20 % of small jobs pin 25 racks of 140"
    )
    interactive_job_gpus: Counted = knob(4, "GPUs", "most an interactive job may have: one node")
    interactive_owner_gpus: Counted = knob(8, "GPUs", "most an owner may have in interactive jobs")
    idle_gpus_s: Positive = knob(
        7_200.0, "s", "2 hours: the owner of interactive work is told that its GPUs stand idle"
    )
    idle_stop_queues: tuple[QueueRef, ...] = knob(
        (), "", "queues in which interactive work whose GPUs stand idle is ended"
    )
    idle_notice_s: NotNegative = knob(600.0, "s", "from telling its owner to that end")
    queue_weight: dict[QueueRef, Positive] = table("", "deserved share of a queue, 1 if not given")
    owner_weight: dict[OwnerRef, Positive] = table("", "deserved share of an owner, 1 if not given")
    fair_half_life_s: Positive = knob(604_800.0, "s", "7 days: after so long use counts half")
    lent_weight: NotNegative = knob(0.25, "", "what time on lent spares counts in an owner's use")
    starve_after_s: Positive = knob(21_600.0, "s", "6 hours: the oldest job of a priority is first")
    starve_racks: Share = knob(0.05, "of racks", "most that are kept for starved jobs")
    spares_large: Natural = knob(2, "nodes", "beside more than 4 protected nodes")
    spares_small: Natural = knob(1, "nodes", "beside 2 to 4 protected nodes")
    spares_idle: Natural = knob(0, "nodes", "in a rack without protected slices")
    spare_racks: Natural = knob(
        0, "racks", "whole ones kept for slices whose rack cannot heal them, as by a switch fault"
    )
    lend_spares: bool = knob(True, "", "2 % of the cell more work, simulated")
    lend_spare_racks: bool = knob(
        True, "", "whole spare racks too, to jobs of one slice: else they stand idle", since=2
    )
    lent_max_nodes: Natural = knob(2, "nodes", "only small jobs are lent a spare")
    lent_grace_s: NotNegative = knob(5.0, "s", "a lent job is killed for a swap")
    interactive_movable_queues: tuple[QueueRef, ...] = knob(
        (), "", "queues in which an administrator lets interactive work be moved"
    )
    operators: tuple[OwnerRef, ...] = knob(
        (), "", "who may act on nodes, settings and others' jobs; none listed: whom the bus lets"
    )
    recovery_precedence_s: NotNegative = knob(0.1, "s", "placement waits for a swap, per fault")
    time_limit_batch_s: Positive = knob(604_800.0, "s", "7 days")
    time_limit_interactive_s: Positive = knob(43_200.0, "s", "12 hours")
    time_limit_pinned_s: Positive = knob(86_400.0, "s", "24 hours")
    block_repeat_s: NotNegative = knob(60.0, "s", "job.blocked at most once a minute and job")
    keep_on_failure_s: NotNegative = knob(
        3600.0, "s", "an hour to look at the nodes of a failed job that asks for it; 0: never"
    )
    retry_backoff_s: NotNegative = knob(10.0, "s", "first wait before a failed start is tried anew")
    retry_backoff_max_s: NotNegative = knob(600.0, "s", "longest such wait")

    maintenance_share: Share = knob(
        0.05, "of racks", "most in planned maintenance at a time, but always one"
    )
    maintenance_force_s: NotNegative = knob(
        300.0, "s", "before a window, work that has found no better place is queued"
    )

    heartbeat_s: Positive = knob(2.0, "s", "25,000 nodes a cell")
    suspect_after_s: Positive = knob(6.0, "s", "three heartbeats")
    fence_after_s: Positive = knob(30.0, "s", "more than 3 times the worst bus failover")
    alone_s: NotNegative = knob(
        0.0,
        "s",
        "second tier of leases: so long a node works on while its witnesses say that the bus is "
        "away (1800 is reasonable); 0: it has none; holds for sessions that join later",
        since=2,
    )
    fresh_s: Positive = knob(3.0, "s", "how old a monitor's proof of quorum may be")
    kill_s: Positive = knob(2.0, "s", "time a fenced worker needs to be gone")
    symptom_window_s: Positive = knob(30.0, "s", "how long symptoms wait for a culprit")
    rack_event_nodes: Annotated[int, Ge(2)] = knob(3, "nodes", "silent or culprits within a window")
    probation_s: NotNegative = knob(3600.0, "s", "first probation, doubled by each fault in 30 d")
    probation_max_s: NotNegative = knob(604_800.0, "s", "longest probation")
    lemon_faults: Counted = knob(3, "faults", "in 30 d: out until a person clears it")
    repair_overdue_s: Positive = knob(86_400.0, "s", "a repair request unanswered so long alarms")
    check_every_s: Positive = knob(
        21_600.0, "s", "6 hours: an idle spare that is dead is found before it is needed"
    )
    check_limit_s: Positive = knob(120.0, "s", "a check that takes longer has failed")
    breaker_min: Counted = knob(6, "culprits", "in the breaker window")
    breaker_share: Annotated[float, Ge(0), Le(1)] = knob(0.002, "of nodes", "in the breaker window")
    breaker_window_s: Positive = knob(300.0, "s", "5 minutes")
    breaker_close_s: Positive = knob(900.0, "s", "below the rate for so long closes it")

    swap_start_s: Positive = knob(60.0, "s", "a spare that has not started by then has failed too")
    rejoin_s: Positive = knob(180.0, "s", "all ranks back after a swap")
    restart_in_place_s: Positive = knob(30.0, "s", "software exit on a healthy node")
    exit_verdict_s: NotNegative = knob(45.0, "s", "an exit waits for a node fault of the same job")
    swap_job_day: Natural = knob(
        3, "swaps", "wished for, a job in 24 h: each takes a node out until it is checked", since=2
    )
    swap_owner_day: Natural = knob(
        6, "swaps", "the same, an owner in all jobs: so many nodes may one word take out", since=2
    )
    poison_swaps: Counted = knob(3, "swaps", "with one signal: the job is suspect")
    poison_window_s: Positive = knob(3600.0, "s", "window of poison_swaps")
    swap_cost_s: NotNegative = knob(90.0, "s", "stall of a swap")
    move_cost_s: NotNegative = knob(180.0, "s", "stall of a slice move")
    hold_max_s: NotNegative = knob(
        600.0, "s", "a restart: so long a wounded job waits for a place that comes free by itself"
    )
    zero_spare_move_s: NotNegative = knob(
        345_600.0, "s", "4 days: a move costs as much as so long without a spare (26 and 5.8 GPU-h)"
    )
    recovery_notice_s: NotNegative = knob(30.0, "s", "notice to a tenant evicted for recovery")

    defrag_delay_s: NotNegative = knob(30.0, "s", "blocks that end by themselves end before this")
    defrag_kappa: Positive = knob(1.0, "", "weight of cost against benefit")
    defrag_wait0_s: Positive = knob(1800.0, "s", "W0: least waiting time credited")
    defrag_notice_s: NotNegative = knob(120.0, "s", "victims checkpoint")
    defrag_drain_s: NotNegative = knob(30.0, "s", "time until freed nodes can start")
    defrag_expiry_s: Positive = knob(600.0, "s", "a plan not carried out by then is withdrawn")
    defrag_victim_cost_gpu_h: NotNegative = knob(1.0, "GPU-h", "people's attention, per victim")
    defrag_repeat: NotNegative = knob(0.5, "", "surcharge per preemption in 24 h")
    defrag_max_repeats: Counted = knob(3, "", "preemptions a job in 24 h")
    defrag_min_runtime_s: NotNegative = knob(900.0, "s", "younger work is left alone")
    defrag_cooldown_s: NotNegative = knob(3600.0, "s", "after a defragmentation")
    defrag_max_victims: Counted = knob(16, "jobs", "per plan")
    defrag_max_share: Annotated[float, Gt(0), Le(1)] = knob(0.02, "of GPUs", "per plan")
    defrag_per_hour: Counted = knob(6, "plans", "per hour")
    defrag_candidates: Counted = knob(20, "sets", "tried in turn when homes fail")
    defrag_slice_move_s: NotNegative = knob(180.0, "s", "a moved slice that keeps its state")
    defrag_near_limit_s: NotNegative = knob(600.0, "s", "a job this near its limit goes by itself")
    defrag_approve: bool = knob(False, "", "a plan waits for an operator")
