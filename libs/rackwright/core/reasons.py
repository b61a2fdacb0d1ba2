"""Reasons as sentences for people: a template for each code, and a fair sentence for any other."""

import re
from collections.abc import Mapping

from rackwright.core.plural import singular
from rackwright.wire.reasons import Reason, RungTaken

Numbers = Mapping[str, int | float | str]

_NAMED = re.compile(r"\{([a-z0-9_]+)\}")


def sentence(reason: Reason) -> str:
    """What this reason says, in one sentence without a full stop."""
    said = _said(reason.code, reason.numbers)
    return singular(said if said is not None else _plain(reason))


def known(code: str) -> bool:
    """Is there a template for this code?"""
    return _family(code) is not None


def rung(taken: RungTaken) -> str:
    """One rung of the ladder: taken or skipped, why, and its price."""
    price = "" if taken.price_gpu_h is None else f", {number(taken.price_gpu_h)} GPU-h"
    verb = "taken" if taken.taken else "skipped"
    return f"{taken.rung} {verb}: {sentence(taken.reason)}{price}"


def number(value: int | float | str) -> str:
    """A number for people: two decimals at most."""
    return f"{round(value, 2):.15g}" if isinstance(value, float) else str(value)


def _said(code: str, numbers: Numbers) -> str | None:
    """The richest template whose numbers are all there; `rest` is the code without its family."""
    known_as = _family(code)
    if known_as is None:
        return None
    values = {"rest": code.removeprefix(known_as), **numbers}
    for template in TEMPLATES.get(known_as) or FAMILIES[known_as]:
        if set(_NAMED.findall(template)) <= values.keys():
            return _NAMED.sub(lambda found: number(values[found[1]]), template)
    return None


def _family(code: str) -> str | None:
    """The code itself if it has templates, else the longest family of codes it belongs to."""
    if code in TEMPLATES:
        return code
    families = (code[: at + 1] for at in range(len(code) - 1, -1, -1) if code[at] == ".")
    return next((family for family in families if family in FAMILIES), None)


def _plain(reason: Reason) -> str:
    """A code nobody has written a sentence for, or one with other numbers than expected."""
    told = ", ".join(f"{name} {number(value)}" for name, value in reason.numbers.items())
    words = reason.code.replace(".", ": ").replace("-", " ").replace("_", " ")
    return f"{words} ({told})" if told else words


# From the richest sentence to the poorest; the first whose numbers are all there is used.
TEMPLATES: dict[str, tuple[str, ...]] = {
    # The seven causes of waiting
    "never": (
        "can never fit: {slices} slices of {slice_nodes} nodes are asked for, {fits} fit the empty"
        " cell; ask for {ask}",
        "can never fit: a slice of {slice_nodes} nodes, the largest rack has {rack}; ask for {ask}",
        "can never fit: {asked_nodes} nodes are asked for, the cell has {cell_nodes}; ask for"
        " {ask}",
        "can never fit: {cpus} cores and {memory_gb} GB are asked for on each node,"
        " {nodes_too_small} nodes have less, {fits} of {slices} slices fit the others",
        "can never fit: {memory_gb} GB are asked for on each node, {nodes_too_small} nodes have too"
        " little memory, {fits} of {slices} slices fit the others",
        "can never fit: {cpus} cores are asked for on each node, {nodes_too_small} nodes have too"
        " few, {fits} of {slices} slices fit the others",
        "can never fit: the cell has {cell_nodes} nodes",
        "can never fit this cell",
    ),
    "quota": (
        "{limit}: queue {queue} may have {most} GPUs of it, {used} are in use, and {asked} more are"
        " asked for",
        "its queue may have no more now",
    ),
    "health": (
        "{fits_when_empty} of {slices} slices of {slice_nodes} nodes fit the healthy nodes, however"
        " empty: {nodes_out} nodes are out ({repairs}), the next is due in {next_due_s} s",
        "{fits_when_empty} of {slices} slices of {slice_nodes} nodes fit the healthy nodes, however"
        " empty: {nodes_out} nodes are out ({repairs})",
        "would fit if every node were healthy",
    ),
    "capacity": (
        "work without GPUs is lent work, and lend_spares is {lend_spares}",
        "work without GPUs needs the cores and memory of {share} GPUs of one node, lent, and in"
        " {broken_racks} racks that take no full slice none is free",
        "{gpus} GPUs are asked for, {free_gpus} are free on nodes in use, and {room} nodes beyond"
        " the spares",
        "{nodes} nodes are asked for, {free} are free outside {spare_racks} whole racks kept as a"
        " spare of the cell, and {keep} nodes of them are kept as spares",
        "{nodes} nodes are asked for, {free} are free and {keep} of them are kept as spares",
        "too few nodes are free",
    ),
    "held": (
        "would fit, but {held} racks are held ({racks}) by {by} for {for_s} s",
        "would fit, but nodes are kept for {kept_for_wounded} racks of wounded work",
        "would fit, but {spare_racks} whole racks are kept as a spare of the cell",
        "would fit, but {kept_for_owed} racks are left to {owed}: its queue is promised them",
        "would fit, but {kept_for_starved} racks are kept for what has waited too long ({starved})",
        "would fit, but nodes are kept for their owners to look at: of {kept_for_failed}",
        "would fit, but nodes are held",
    ),
    "topology.pinned": (
        "{nodes} nodes in {slices} slices of {slice_nodes} are asked for, {racks_that_fit} racks"
        " fit, and {fits_when_moved} would if all that may be moved were: pinned work ({pins})"
        " is in {pinned_racks} racks",
        "free nodes lie apart, and what is between them may not be moved",
    ),
    "topology.movable": (
        "{free} nodes are free, but only {racks_that_fit} racks have {slice_nodes} together; moving"
        " other work could make room: a plan waits for `rackwright approve {approve}`",
        "{nodes} nodes in {slices} slices of {slice_nodes} are asked for, {free} are free, but only"
        " {racks_that_fit} racks have {slice_nodes} together; moving other work could make room",
        "free nodes lie apart; moving other work could make room",
    ),
    "fits": ("there is a place: it is placed at its turn",),
    "backoff": ("tried again in {for_s} s",),
    "paused": ("an operator has paused {automation} for {for_s} s more",),
    "gates": ("{ranks} ranks wait until earlier workers have ended, first {first}",),
    "coming-up": ("{ready} of {ranks} ranks are ready",),
    # Placement
    "placed": (
        "{nodes} nodes in {slices} slices on {racks} racks, {lent} of them lent: small work that"
        " may be killed goes on spares before it breaks a whole rack",
        "{nodes} nodes in {slices} slices on {racks} racks",
        "placed",
    ),
    "placed.scattered": (
        "{nodes} nodes in {slices} slices on {racks} racks, {slices_asked} were asked for",
    ),
    "placed.fewer": ("{slices} of {slices_asked} slices on {racks} racks start now",),
    "grown": (
        "{slices} slices more fit, it has {has} of {asked}",
        "what it lacked has a place now",
    ),
    "slice.uneven": (
        "{nodes} nodes are no multiple of the slice of {slice_nodes}: the last slice has {last};"
        " {ask} would be even",
    ),
    "slice.wide": (
        "a slice of {nodes} of {rack} nodes leaves {spares} spares of {wanted}: a lost node may"
        " have no replacement in the rack",
    ),
    "checkpoint.local": (
        "checkpoints on the node's own disk: the job cannot be moved by restarting it elsewhere",
    ),
    "exclude.unknown": ("exclude_nodes: the cell has no nodes {unknown}",),
    "checkpoint.none": (
        "no checkpoint interval is given: after a restart the job begins from the start",
    ),
    # Ends and exits
    "cancelled": ("{why}", "as was wished"),
    "cancelled-ahead": ("{why}", "as was wished, before any such job was known"),
    "gpus.idle": (
        "its GPUs have been idle for {idle_s} s: it is ended in {notice_s} s if they stay so",
        "its GPUs have been idle for {idle_s} s: end it if they are not needed",
        "its GPUs stand idle",
    ),
    "gpus.idle-ended": ("its GPUs were idle for {idle_s} s, and its queue ends such work",),
    "time-limit": ("its time limit of {limit_s} s is over",),
    "supervisor.lost": ("rank {rank} lost its supervisor", "its supervisor was killed"),
    "start-timeout": ("rank {rank} did not start in time", "it did not start in time"),
    "symptom": ("its peers' loss ended it", "an end that followed from another one"),
    "stopped": ("rank {rank} was stopped", "it was stopped"),
    "fenced": ("rank {rank} lost its lease", "its lease ended"),
    "exit": ("rank {rank} ended with {exit}", "it ended by itself"),
    "lost.finishing": ("rank {rank} was lost while the job was ending ({signal})",),
    "lost.node": ("rank {rank} lost its node ({signal}) and the job cannot be restarted",),
    "lost.process": ("rank {rank} lost its process ({signal}) and the job cannot be restarted",),
    "lost.drain": ("the node of rank {rank} is drained and the job cannot be restarted",),
    # Wishes that are not granted
    "too-late": ("it came {late_s} s after the time it names",),
    "not-possible": ("{why}",),
    "cancelled-before": ("{by} cancelled this id before it was submitted",),
    "ledger-full": ("the ledger is full to {used}, submits are refused from {limit} on",),
    "id-taken": ("the id is in use by another job of {owner}, which is {state}",),
    "already-ended": ("the job is {state} already",),
    "unknown-job": ("there is no job {job}", "there is no such job"),
    "not-suspended": ("the job is {state}, only suspended ones are resumed",),
    "upgrade.done": ("the cell is at fold version {version} already",),
    "upgrade.unknown": (
        "the placer knows fold versions up to {version}: upgrade the services first, then the cell",
    ),
    "upgrade.waits": (
        "the cell is at fold version {version}, this software brings {known}: when all copies of "
        "all services run it, say `rackwright upgrade`",
    ),
    "swap.not-running": ("the job is {state}, only ranks that run are swapped",),
    "swap.no-such-rank": ("the job has {ranks} ranks, counted from 0",),
    "swap.not-restartable": ("nobody may restart this job's processes",),
    "swap.part-of-node": ("the job has a part of a node, which has no spare",),
    "swap.too-many": (
        "{swaps} swaps were wished for in 24 hours, {limit} allows {allowed}: the next in {in_s} s",
        "{limit} allows none",
    ),
    # Recovery
    "requeue": ("the job is stopped and queued again as a whole: {rule}",),
    "process": ("{ranks} ranks start again where they are ({codes})",),
    "node": ("{ranks} ranks have no good node ({codes})",),
    "part-of-node": ("a part of a node has no spare",),
    "spare": ("a free spare of the rack",),
    "spares.none": ("the rack has no free spare",),
    "spares.short": ("the rack has too few free spares",),
    "lent": ("spares that are lent to small work",),
    "lent.none": ("no spare of the rack is lent",),
    "small": ("work of one node or on spares takes nobody's spares",),
    "drain.waits": ("a drain takes nobody's nodes",),
    "tenant": ("nodes of work that may be preempted in the same rack",),
    "tenants.none": ("no work in the rack may be preempted",),
    "tenants.dear": ("preempting in the rack costs more than moving the slice",),
    "free-rack": ("another rack has {nodes} free nodes: {rack}", "another rack is free"),
    "lent-rack": (
        "a spare rack of the cell, which was lent, has {nodes} nodes once its tenants are gone:"
        " {rack}",
        "a spare rack of the cell is taken back",
    ),
    "racks.none": ("no other rack has {nodes} free nodes", "no other rack is free"),
    "evict": ("work that may be preempted makes room in another rack",),
    "victims.none": ("no work elsewhere may be preempted",),
    "victims.dear": ("preempting elsewhere costs more than starting again",),
    "zero-spares": (
        "no spare is left in its rack and the next is due in {due_h} hours; {rack} has {spares}",
        "no spare is left in its rack and none is due; {rack} has {spares}",
    ),
    "nothing-kept": ("no nodes are kept for it",),
    "not-elastic": ("the job does not say with how few slices it can go on (min_slices)",),
    "slices.min": ("{left} slices would be left, it needs {min_slices}",),
    "shrink": ("the job goes on with {left} slices; it needs {min_slices}",),
    "shrunk": ("{left} slices are left of it until there is room again",),
    "replica.no-place": (
        "replica {replica} of {group} waits for a place, the others serve on",
        "a replica waits for a place, the others serve on",
    ),
    "no-place": ("there is no place for the slice",),
    "evicted": (
        "made room for {by} by plan {plan}: it is at the head of its priority",
        "made room for the recovery of {by}",
    ),
    "suspect_workload": (
        "{swaps} nodes failed under it with {signal} within {window_s} s: the work is suspect",
    ),
    "rack.held": ("the rack is held",),
    "rack.isolated": ("the rack is cut off",),
    "rack.degraded": ("the rack is degraded",),
    "rack.evacuate": ("the rack is to be left as a whole",),
    "rack.down": ("the rack is down",),
    "rack.maintenance": ("the rack goes into maintenance",),
    # Defragmentation
    "defrag.pays": (
        "costs {cost} GPU-h, waiting costs {benefit}: room in {racks} is made by {victims} jobs",
    ),
    "defrag.victim": ("made room for {for} by plan {plan}",),
    "defrag.paused": ("an operator has paused defragmentation",),
    "defrag.in-flight": ("plan {plan} is still being carried out",),
    "defrag.expired": ("it was not carried out within {after_s} s",),
    "defrag.requeued": ("{job} went back into the queue",),
    "defrag.cancelled": ("{job} was cancelled",),
    "defrag.failed": ("{job} failed",),
    "defrag.rejected": ("{job} is no more",),
    "defrag.node-failed": ("a node that was meant for {job} failed",),
    "defrag.fits": ("{job} fits without it by now",),
    "defrag.asked": ("an operator asked for it",),
    "limits": ("every set is beyond the limits of one plan",),
    "defrag.not-blocked": ("the job is {state} and not blocked by movable topology ({cause})",),
    "defrag.too-soon": ("it has not been blocked for long enough",),
    "defrag.per-hour": ("{plans} plans in the last hour are enough",),
    "no-fit": ("the freed racks do not take {job}",),
    "no-home": ("{job} would have no place to go",),
    "victims": ("too many jobs would have to move",),
    "not-smaller": ("it is as large as the job that waits, at equal priority",),
    "share": ("too large a share of the cell would have to move",),
    "repairing": ("{by} is at it, it will be done in {in_s} s",),
    "maintenance": (
        "maintenance of its nodes begins in {begin_s} s, and there was no better place",
        "its nodes go into maintenance",
    ),
    "pinned": ("an operator has pinned it",),
    "not-yours": ("{job} is {owner}'s: only they and operators may",),
    "operators-only": ("only operators may: {operators}",),
    "maintenance.leave": ("maintenance begins where it is: it leaves at its next checkpoint",),
    "maintenance.stays": ("maintenance begins where it is, and it is not moved: end it in time",),
    "drain.turn": (
        "replica {replica} of {group} leaves when replica {for_replica} is up, awaited for"
        " {for_s} s: {serve} of {replicas} serve, and {least} must; drained {drained_s} s ago",
        "replica {replica} of {group} leaves at its turn: {serve} of {replicas} serve, and {least}"
        " must; drained {drained_s} s ago",
        "it leaves at its turn: {serve} of {replicas} replicas of {group} serve, and {least} must",
    ),
    "maintenance.window": ("{field} {is} {why}; ask for {ask}",),
    "maintenance.no-room": (
        "{slices} slices ({nodes} nodes) that must leave have no room elsewhere now; the largest"
        " needs {largest} nodes of one rack",
    ),
    "read-only": ("the cell is read only for {for_s} s more (rackwright unpause all ends it)",),
    "breaker-open": (
        "the breaker is open: {culprits} culprits, it trips at {limit}; failures that are only"
        " inferred are not acted on for {for_s} s more (rackwright close-breaker: they are real)",
    ),
    "breaker-not-open": ("the breaker is not open: {culprits} culprits, it trips at {limit}",),
    "locks-out": ("operators: {owner} is not in the list, and could not change it again",),
    "defrag.awaits-approval": ("the plan waits for an operator: rackwright approve {job}",),
    "interactive": ("interactive work is never moved",),
    "service": ("a service that is not declared movable",),
    "service.parts": ("a service of which a replica has several slices",),
    "not-restartable": ("it cannot be restarted",),
    "not-preemptible": ("it may not be preempted",),
    "checkpoint.overdue": (
        "its last checkpoint is {age_s} s old and one is due every {interval_s} s: nobody moves it",
        "its checkpoint is overdue: too much work would be lost",
    ),
    "finishing": ("it is about to end",),
    "wounded": ("it is being recovered",),
    "in-plan": ("it is part of another plan",),
    "starting": ("it has not started yet",),
    "higher-priority": ("its priority is higher",),
    "young": ("it started or moved a short while ago",),
    "cooldown": ("it made room a short while ago",),
    "repeats": ("it has made room often enough today",),
    "near-limit": ("it ends by itself soon",),
    # Health
    "silence": (
        "no heartbeat for {waited_s} s after it was suspected",
        "no heartbeat for {silent_s} s",
        "no heartbeat",
    ),
    "culprits": ("two of its nodes failed within {window_s} s", "several of its nodes failed"),
    "rack.event": (
        "so many of its nodes failed within {window_s} s that the rack itself is at fault",
    ),
    "lemon": ("{faults} faults in 30 days: a person must clear it",),
    "lemon.slot": ("{faults} faults in 30 days of {boards} boards in this slot: look at the slot",),
    "lemon.hardware": (
        "hardware {serial} had {faults} faults in 30 days, not all in this slot: a person must"
        " clear it",
    ),
    "moved": (
        "hardware {serial} came from another slot, where it had {fault}, and nobody has let it in"
        " since",
    ),
    "returned": ("came back healed",),
    "repaired": ("repaired",),
    "heard": ("heard again",),
    "quiet": ("no new fault for long enough",),
    "progress-timeout": (
        "no rank made progress for {since_s} s, {limit_s} s are allowed; rank {rank} was silent for"
        " longest ({retries} of {budget} retries used)",
        "no rank made progress for too long",
    ),
    "progress-timeout.peer": ("it hung together with another rank",),
    "release.none": ("no place for {nodes} nodes is known to come free in time",),
    "session.lost": ("its process was gone when the node came back",),
    "drain": ("its node is drained",),
    "unknown-node": ("there is no node {node}", "there is no such node"),
    "already": ("{why}",),
    "not-in-repair": ("nothing about this node waits for repair",),
    "not-joined": ("the node has not joined since: its agent must run first",),
    "other-serial": ("the hardware found is {found}, not {said}",),
    "gpu-count": ("{found} GPUs are found, {wanted} belong there", "GPUs are missing"),
    "nvlink-down": ("an NVLink is down",),
    "row-remap": ("memory rows are being remapped",),
    "throttle": ("the GPU is throttled",),
    "ib-down": ("the network port is down: good for work inside the rack only",),
    "check.passed": ("it passed in {seconds} s", "it passed"),
    "check.failed": ("the site's check failed with {code}: {said}", "the site's check failed"),
    "check.unanswered": (
        "the site's check has not been answered for {waited_s} s",
        "the site's check has not been answered",
    ),
    "hook-failed": ("a site hook failed",),
    "kill-failed": ("a process could not be ended",),
    "start-failed": (
        "rank {rank} ended with {exit} at the start: try {retry} of {budget} in {wait_s} s",
        "a process could not be started",
    ),
}

# Codes that begin so. {} as above.
FAMILIES: dict[str, tuple[str, ...]] = {
    "spec.": ("{field} {is} {why}; ask for {ask}", "the specification cannot stand"),
    "policy.": ("{field} {is} {why}; ask for {ask}", "the settings cannot stand"),
    "exit.": (
        "rank {rank} ended with {exit}, and {retries} of {budget} retries are used up",
        "its process ended with {exit}",
        "its process ended by itself",
    ),
    "xid.": ("GPU {gpu} reported Xid {rest}", "a GPU reported Xid {rest}"),
    "fabric.": ("the NVLink fabric is not ready",),
    "repaired.": ("{by} repaired it", "repaired"),
}
