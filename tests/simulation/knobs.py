"""What a seed means: the size of the cell, who lives in it, and which faults come how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from rackwright.sim.paths import Weather
from rackwright.wire.ids import QueueName
from rackwright.wire.policy import Policy

# Mean number of times a fault comes in a story, when a seed has it.
RATES: dict[str, float] = {
    "process killed": 3.0,
    "process paused": 2.0,
    "process cut off": 2.0,
    "process restarted old": 1.0,
    "agent killed": 2.0,
    "agent paused": 2.0,
    "node dies": 2.0,
    "node reboots": 2.0,
    "node leaves for good": 0.7,
    "node cut off": 2.0,
    "node in one direction": 1.0,
    "rack cut off": 0.7,
    "half cut off": 0.5,
    "kill stuck": 2.0,
    "fault": 4.0,
    "symptoms of a rack": 1.0,
    "noise": 3.0,
    "bus outage": 0.7,
    "values lost": 0.5,
    "statuses lost": 0.5,
    "snapshot corrupted": 1.0,
    "foreign commit": 1.0,
    "garbage": 2.0,
    "wish repeated": 2.0,
    "job cancelled": 2.0,
    "drain": 1.5,
    "cordon": 1.0,
    "swap wished": 1.0,
    "hold": 0.7,
    "maintenance": 0.5,
    "automation paused": 0.7,
    "policy set": 0.7,
    "repair": 2.0,
    "rack defined": 0.5,
    "long silence": 0.7,
    "minority": 0.7,
    "wall clock jumps": 1.0,
    "cell upgraded": 0.5,
}
# Added later, and drawn apart, so that seeds go on to mean what they meant.
RATES_ADDED: dict[str, float] = {
    "read only": 0.7,
    "bus clock jumps": 1.0,
    "long outage": 0.7,
    "island": 0.7,
}
# Faults that are a state of the world and not a moment: chances.
STATES: dict[str, float] = {
    "weather": 0.6,
    "crash at an effect": 0.5,
    "skewed clocks": 0.4,
    "own folds": 0.3,
    "old version": 0.1,
    "jobs exit badly": 0.4,
    "jobs run without a lease": 0.15,
}
STATES_ADDED: dict[str, float] = {"second tier": 0.4}
KINDS = (*RATES, *RATES_ADDED, *STATES, *STATES_ADDED)
# They last longer than a node is waited for.
LONG = frozenset({"long silence", "minority", "long outage", "island"})

PROMISED = QueueName("promised")  # a third of the jobs are in it, and take back what others have
POLICY = Policy(
    slice_nodes=4,
    queue_guarantee={PROMISED: 12},
    cpu_only_queues=(QueueName("default"),),
    heartbeat_s=1.0,
    suspect_after_s=2.5,
    fence_after_s=4.0,
    fresh_s=1.5,
    kill_s=0.5,
    symptom_window_s=3.0,
    probation_s=2.0,
    probation_max_s=8.0,
    breaker_window_s=10.0,
    breaker_close_s=10.0,
    swap_start_s=8.0,
    rejoin_s=10.0,
    restart_in_place_s=3.0,
    exit_verdict_s=2.0,
    keep_on_failure_s=3.0,
    recovery_notice_s=1.0,
    zero_spare_move_s=2.0,
    lent_grace_s=0.5,
    block_repeat_s=5.0,
    retry_backoff_s=1.0,
    retry_backoff_max_s=4.0,
    defrag_delay_s=1.0,
    defrag_notice_s=2.0,
    defrag_drain_s=0.5,
    defrag_expiry_s=15.0,
    defrag_min_runtime_s=1.0,
    defrag_cooldown_s=3.0,
    defrag_max_share=1.0,
    defrag_per_hour=60,
    defrag_victim_cost_gpu_h=0.0,
    defrag_near_limit_s=1.0,
)
# A lease that leaves room for promises, and a second tier that ends within a story.
SECOND_TIER = replace(
    POLICY, heartbeat_s=0.5, suspect_after_s=1.5, fence_after_s=5.0, fresh_s=1.0, alone_s=12.0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """One world. `rates` holds the faults it has, `weather` the one of every path."""

    seed: int
    racks: int
    nodes: int
    gpus: int
    copies: Mapping[str, int]
    jobs: int
    chaos_s: float
    rates: Mapping[str, float]
    weather: Weather
    crash_odds: float
    skew: float
    own_folds: float
    old_version: bool
    bad_exits: float
    leaseless: float
    policy: Policy = POLICY

    def has(self, kind: str) -> bool:
        """Does this world know this fault?"""
        return kind in self.rates


SERVICES = ("placer", "health-monitor", "spare-manager", "defragmenter", "dispatcher")


def draw(
    seed: int,
    *,
    without: frozenset[str] = frozenset(),
    jobs: int | None = None,
    chaos_s: float | None = None,
    brief: bool = False,
) -> Knobs:
    """The world of a seed. `without` leaves faults out, the others replace what was drawn; a
    `brief` one is small and short, so that a thousand fit into a run of all tests."""
    random = Random(f"knobs {seed}")
    copies = {service: random.choice((1, 1, 1, 2, 2, 3)) for service in SERVICES}
    racks, nodes = random.choice(((1, 6), (2, 4), (2, 5), (2, 6), (3, 5), (4, 3)))
    share = random.choice((0.2, 0.4, 0.7))
    rates = {
        kind: rate * random.choice((0.5, 1.0, 2.0))
        for kind, rate in RATES.items()
        if random.random() < share
    }
    added = Random(f"knobs added {seed}")
    rates |= {
        kind: rate * added.choice((0.5, 1.0, 2.0))
        for kind, rate in RATES_ADDED.items()
        if added.random() < share
    }
    rates |= {kind: 1.0 for kind, odds in STATES.items() if random.random() < odds}
    rates |= {kind: 1.0 for kind, odds in STATES_ADDED.items() if added.random() < odds}
    weather = Weather(
        delay_s=random.choice((0.002, 0.01, 0.05)),
        late=random.choice((0.0, 0.01, 0.1)),
        slow_s=random.choice((0.1, 0.5, 1.5)),
        lost=random.choice((0.0, 0.01, 0.1)),
        doubled=random.choice((0.0, 0.02, 0.2)),
    )
    drawn_jobs, drawn_s = random.choice((2, 4, 6, 10)), random.choice((6.0, 12.0, 20.0))
    crash_odds = random.choice((0.001, 0.005, 0.02))
    if brief:
        racks, nodes = random.choice(((1, 4), (1, 5), (2, 3), (2, 4)))
        copies = {service: random.choice((1, 1, 1, 1, 2)) for service in SERVICES}
        drawn_jobs, drawn_s = random.choice((1, 2, 3, 4)), random.choice((3.0, 4.0, 6.0))
    if not brief and LONG & rates.keys():  # also without them: nothing else changes then
        # What is silent for long must be silent long enough, and be missed by somebody.
        drawn_s = max(drawn_s, 20.0)
        copies["health-monitor"] = max(copies["health-monitor"], 2)
    rates = {kind: rate for kind, rate in rates.items() if kind not in without}
    return Knobs(
        seed=seed,
        racks=racks,
        nodes=nodes,
        gpus=random.choice((1, 4)),
        copies=copies,
        jobs=drawn_jobs if jobs is None else jobs,
        chaos_s=drawn_s if chaos_s is None else chaos_s,
        rates=rates,
        weather=weather if "weather" in rates else Weather(delay_s=0.005),
        crash_odds=crash_odds if "crash at an effect" in rates else 0.0,
        skew=0.02 if "skewed clocks" in rates else 0.0,
        own_folds=0.5 if "own folds" in rates else 0.0,
        old_version="old version" in rates,
        bad_exits=0.2 if "jobs exit badly" in rates else 0.0,
        leaseless=0.3 if "jobs run without a lease" in rates else 0.0,
        policy=SECOND_TIER if "second tier" in rates else POLICY,
    )
