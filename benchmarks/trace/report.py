"""What a run must have shown, its figures, and the page that tells them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.trace.states import OCCUPIED, State
from benchmarks.trace.story import TOPOLOGY, Life, Story, ended_well
from benchmarks.trace.workload import DAY, Workload
from rackwright.core.audit import CHECKS, Audit
from rackwright.wire.jobs import JobClass

BANDS = (("part of a node", 0, 3), ("1 to 8 nodes", 4, 32), ("9 nodes and more", 33, 1 << 30))
HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Something the run had to show."""

    text: str
    wanted: str
    found: str
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How it was run. `took_s`: real seconds from the first submit to the last end."""

    seed: int
    speed: float
    took_s: float
    machine: str
    large: str
    small: str


def claims(workload: Workload, story: Story, audit: Audit) -> list[Claim]:
    """Every claim of the run, checked."""

    def least(text: str, wanted: int, found: int) -> Claim:
        return Claim(text=text, wanted=f">= {wanted}", found=str(found), held=found >= wanted)

    def none(text: str, found: int) -> Claim:
        return Claim(text=text, wanted="0", found=str(found), held=found == 0)

    topology = sum(count for code, count in story.episodes.items() if code.startswith(TOPOLOGY))
    jobs = len(workload.jobs)
    ended = sum(1 for life in story.lives.values() if life.ended is not None)
    return [
        least("jobs blocked by topology", 20, topology),
        least("defragmentations", 5, story.counts["defrag.planned"]),
        least("swaps inside a rack", 3, story.counts["slice.swapped"]),
        least("slices moved to another rack", 1, story.counts["slice.moved"]),
        Claim(text="jobs ended", wanted=str(jobs), found=str(ended), held=ended == jobs),
        none(
            "interactive jobs touched by recovery of others or defragmentation", len(story.touched)
        ),
        none("violations found in the ledger", len(audit.violations)),
    ]


def figures(run: Run, workload: Workload, story: Story, audit: Audit) -> dict[str, Any]:
    """What is told of the run, for machines."""
    waits = {name: _waits(run, _band(story, low, high)) for name, low, high in BANDS}
    return {
        "run": asdict(run),
        "workload": {
            "jobs": len(workload.jobs),
            "large": sum(1 for job in workload.jobs if job.id.startswith("large-")),
            "interactive": sum(1 for job in workload.jobs if job.job_class is JobClass.INTERACTIVE),
            "span_days": round(workload.span_s / DAY, 2),
            "offered_load": round(workload.load, 3),
            "offered_load_large": round(workload.large_load, 3),
        },
        "realised_load": round(_realised(run, workload, story), 3),
        "gpu_share_by_state": _shares(story),
        "finished": ended_well(story),
        "ended_otherwise": len(story.lives) - ended_well(story),
        "blocked": dict(sorted(story.episodes.items())),
        "entries": dict(sorted(audit.counts.items())),
        "commits": audit.commits,
        "voids": audit.voids,
        "entries_per_s": round(audit.entries / run.took_s, 1),
        "defrag": {
            "plans": story.counts["defrag.planned"],
            "withdrawn": story.counts["defrag.withdrawn"],
            "victims": story.victims,
            # The ledger's hours are real ones; the trace's are `speed` times as long.
            "cost_gpu_h": round(story.cost_gpu_h * run.speed, 1),
            "benefit_gpu_h": round(story.benefit_gpu_h * run.speed, 1),
        },
        "fault_to_recovery_ms": _spread([one * 1000 for one in story.swap_s]),
        "wait_h": waits,
    }


def _band(story: Story, low: int, high: int) -> list[Life]:
    return [life for life in story.lives.values() if low <= life.gpus <= high]


def _waits(run: Run, lives: Sequence[Life]) -> dict[str, float]:
    return _spread(
        [
            (life.started - life.submitted) * run.speed / HOUR
            for life in lives
            if life.started is not None
        ]
    )


def _spread(values: Sequence[float]) -> dict[str, float]:
    if len(values) < 2:
        return {"count": len(values)}
    cuts = quantiles(values, n=100, method="inclusive")
    return {
        "count": len(values),
        "p50": round(median(values), 2),
        "p90": round(cuts[89], 2),
        "p99": round(cuts[98], 2),
        "max": round(max(values), 2),
    }


def _shares(story: Story) -> dict[str, float]:
    total = sum(sum(sample.gpus.values()) for sample in story.samples)
    return {
        state.name.lower(): round(sum(one.gpus.get(state, 0) for one in story.samples) / total, 4)
        for state in State
    }


def _realised(run: Run, workload: Workload, story: Story) -> float:
    """Share of the installed GPUs that had work, up to the last large submit."""
    until = story.begins + workload.span_s / run.speed
    within = [sample for sample in story.samples if sample.at <= until]
    taken = sum(count for one in within for state, count in one.gpus.items() if state in OCCUPIED)
    return taken / sum(sum(sample.gpus.values()) for sample in within)


def save(path: Path, found: dict[str, Any], checked: Sequence[Claim]) -> None:
    """Write the figures and claims."""
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {**found, "claims": [asdict(claim) for claim in checked]}
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def page(found: dict[str, Any], checked: Sequence[Claim], audit: Audit) -> str:
    """The report, as Markdown beside the pictures."""
    run, load = found["run"], found["workload"]
    return "\n".join(
        [
            "# A recorded workload on a live cell",
            "",
            *_how(run, load),
            "",
            "| it had to show | wanted | found | |",
            "|---|---|---|---|",
            *(
                f"| {one.text} | {one.wanted} | {one.found} | {'held' if one.held else 'FAILED'} |"
                for one in checked
            ),
            "",
            "## Who had the GPUs",
            "",
            f"Offered load {load['offered_load']:.2f}, realised {found['realised_load']:.2f} of the"
            " installed GPUs up to the last submit of a large job. Every GPU is in one state at"
            " each moment.",
            "",
            "![GPUs by state over time](occupancy.png)",
            "",
            "Every line is a node, 18 of them a rack.",
            "",
            "![state of each node over time](racks.png)",
            "",
            "## Who waited",
            "",
            "![the queue](queue.png)",
            "",
            *_waiting(found),
            "",
            "## What happened",
            "",
            "![events by kind](events.png)",
            "",
            *_happened(found),
            "",
            "## What was verified",
            "",
            f"The ledger was folded again from its first entry: {found['commits']} commits, "
            f"{sum(found['entries'].values())} entries, {found['voids']} of the commits void, "
            f"{audit.scans} scans of the whole cell. Checked:",
            "",
            *(f"- {check}" for check in CHECKS),
            "",
        ]
    )


def _how(run: dict[str, Any], load: dict[str, Any]) -> list[str]:
    return [
        f"36 racks of 18 nodes with 4 GPUs. {load['large']} large jobs ({run['large']}, submit"
        " times compressed 6.5 times more than durations) and"
        f" {load['jobs'] - load['large']} jobs of at most 32 GPUs ({run['small']}), of which"
        f" {load['interactive']} interactive. {load['span_days']} days of submits, run"
        f" {run['speed']:.0f} times as fast as recorded: {run['took_s']:.0f} s. Seed"
        f" {run['seed']}. Machine: {run['machine']}.",
        "",
        "The bus, every service and the agents are the real ones, as processes; only the workers"
        " are pretended: timers that keep the protocol. Times that policy weighs against the"
        " length of jobs are divided by the same speed; leases, silence and starts are not. So a"
        " start, some tenths of a real second, counts as minutes of the trace. Durations, waits"
        " and GPU-hours are the trace's; milliseconds are real. Failures: single nodes with a mean"
        " of 490 days between them, repaired in a day on average, and four bad hours of one rack.",
    ]


def _waiting(found: dict[str, Any]) -> list[str]:
    rows = ["| hours from submit to start | jobs | p50 | p90 | p99 |", "|---|---|---|---|---|"]
    for band, one in found["wait_h"].items():
        cells = " | ".join(str(one.get(key, "")) for key in ("p50", "p90", "p99"))
        rows.append(f"| {band} | {one['count']} | {cells} |")
    blocks = ", ".join(f"{code} {count}" for code, count in found["blocked"].items())
    return [*rows, "", f"Unbroken blocks by cause: {blocks or 'none'}."]


def _happened(found: dict[str, Any]) -> list[str]:
    defrag, entries = found["defrag"], found["entries"]
    recovery = found["fault_to_recovery_ms"]
    return [
        f"- Defragmentation: {defrag['plans']} plans ({defrag['withdrawn']} withdrawn),"
        f" {defrag['victims']} victims; {defrag['cost_gpu_h']} GPU-hours of cost estimated against"
        f" {defrag['benefit_gpu_h']} of benefit.",
        f"- Recovery: {entries.get('slice.swapped', 0)} swaps, {entries.get('slice.moved', 0)}"
        f" moves, {entries.get('job.requeued', 0)} requeues; from the node's fault in the ledger to"
        f" the recovery in the ledger p50 {recovery.get('p50', '-')} ms, max"
        f" {recovery.get('max', '-')} ms on a machine that ran the whole cell.",
        f"- {found['finished']} jobs finished, {found['ended_otherwise']} ended otherwise (work"
        " that may not be restarted and lost its node).",
        f"- {found['entries_per_s']} ledger entries per real second.",
    ]
