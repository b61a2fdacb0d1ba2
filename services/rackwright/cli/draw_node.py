"""One node as a page."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from rackwright.cli.draw_jobs import draw_story
from rackwright.cli.show import ago, clock, stale
from rackwright.gateway.views import NodeAnswer, TenantView


def draw_node(view: NodeAnswer) -> RenderableType:
    """All about one node."""
    cell = view.node
    head = Text.assemble(
        (cell.node, "bold"),
        f"  {cell.state}  fit for {cell.fitness}, {cell.taken} of {cell.gpus} GPUs taken\n",
        f"place {view.place} of rack {view.rack}",
    )
    for line in (*_hardware(view), *_health(view)):
        head.append("\n" + line)
    parts: list[RenderableType] = [head]
    if view.tenants:
        parts += [Text(), *(Text(_tenant(tenant)) for tenant in view.tenants)]
    if view.story:
        parts += [Text(), *draw_story(view.story, view.left_out)]
    warning = stale(view)
    return Group(*parts, *([warning] if warning else []))


def _hardware(view: NodeAnswer) -> Iterator[str]:
    if view.serial:
        model = f", {view.gpu_model}" if view.gpu_model else ""
        yield f"serial {view.serial}{model}, {view.cores} cores, {view.memory_gb:g} GB"
    if view.session is not None:
        said = "" if view.status_at is None else f", spoke last at {clock(view.status_at)}"
        yield f"session {view.session}{said}"
    else:
        yield "has not joined"


def _health(view: NodeAnswer) -> Iterator[str]:
    if view.cordoned:
        word = "draining" if view.draining else "cordoned"
        because = f" ({view.cordoned_for})" if view.cordoned_for else ""
        yield f"{word}{because}: {_ends(view)}"
    for one in view.stays:
        yield f"{one.job} stays: {one.waits.text}"
    if view.kept_for is not None and view.kept_until is not None:
        yield f"kept for {view.kept_for}, which failed, for {ago(view.kept_until - view.time)}"
    if view.suspected_at is not None:
        yield f"suspected since {clock(view.suspected_at)}"
    if view.why is not None:
        yield f"why ({view.why.code}): {view.why.text}"
    if view.repair is not None:
        since = "" if view.repair_at is None else f" since {clock(view.repair_at)}"
        due = "" if view.repair_eta is None else f", due at {clock(view.repair_eta)}"
        yield f"needs {view.repair}{since}{due}"
    if view.check_asked:
        yield f"is to be checked ({view.check_asked})"
    if view.checked_at is not None:
        yield f"{'passed' if view.check_passed else 'failed'} its check at {clock(view.checked_at)}"
    yield from _history(view)


def _ends(view: NodeAnswer) -> str:
    """When a node that takes no new work will take some again."""
    by_hand = f"`rackwright uncordon {view.node.node}`"
    match view.cordoned_for:
        case "":
            return f"until {by_hand}"
        case "swap" if view.checks:
            return f"until it has passed its check, or {by_hand}"
        case "swap":
            return f"it has no check, so until {by_hand}"
        case "maintenance":
            return f"until its maintenance is over, or {by_hand}"
        case _:
            return f"until that is over, or {by_hand}"


def _history(view: NodeAnswer) -> Iterator[str]:
    if view.probation_until is not None:
        yield f"on probation for {ago(view.probation_until - view.time)}"
    for fault in view.faults[-5:]:
        yield f"fault at {clock(fault.at)} ({fault.code}): {fault.text}"
    if view.boards_failed > 1:
        yield f"{view.boards_failed} boards have failed in this slot in 30 days"
    for fault in view.faults_elsewhere[-5:]:
        yield f"its hardware had, in another slot, at {clock(fault.at)} {fault.code}: {fault.text}"


def _tenant(tenant: TenantView) -> str:
    gpus = f", GPUs {', '.join(map(str, tenant.gpus))}" if tenant.gpus else ""
    state = tenant.state or "not reported"
    pid = f", pid {tenant.pid}" if tenant.pid is not None else ""
    more = ", leaving" if tenant.leaving else ", lent" if tenant.lent else ""
    return f"worker {tenant.worker}: {state}{pid}{gpus}{more}"
