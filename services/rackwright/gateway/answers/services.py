"""Who answers: the services of the cell and their copies."""

from rackwright.gateway import asked, views
from rackwright.gateway.context import Context
from rackwright.gateway.roster import Copy, Present


def services(context: Context, question: asked.Services) -> views.ServicesAnswer:
    """All services."""
    return views.ServicesAnswer(
        **context.made(), services=tuple(_service(one) for one in context.present)
    )


def _service(present: Present) -> views.ServiceView:
    return views.ServiceView(
        service=present.service,
        silent_s=None if present.silent_s is None else round(present.silent_s, 1),
        missing=present.missing,
        copies=tuple(_copy(copy) for copy in present.copies),
    )


def _copy(copy: Copy) -> views.CopyView:
    said = copy.answer.metadata
    stopped, seq = said.get("stopped_at", ""), said.get("revision", "")
    return views.CopyView(
        copy=copy.answer.copy,
        id=copy.answer.id,
        version=copy.answer.version,
        ready=copy.answer.ready,
        seq=int(seq) if seq.isdigit() else 0,
        stopped_at=int(stopped) if stopped.isdigit() else None,
        why=said.get("why", ""),
    )
