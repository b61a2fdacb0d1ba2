"""One of a thing: `1 nodes are free` becomes `1 node is free`."""

import re

_THINGS = (
    "nodes|slices|racks|ranks|jobs|GPUs|cores|spares|sets|faults|swaps|moves|restarts|requeues"
    "|victims|plans|culprits|boards|workers|processes|replicas|commits|entries|days|hours|domains"
    "|retries|requests|windows|tries|checks|links|places|priorities|messages|systems|times"
)
_SUCH = "(?:whole |free |healthy |other |earlier )?"
_ONE = re.compile(rf"(?<![\w.,-])1 ({_SUCH})({_THINGS})\b( \w+)?")
_VERBS = {"are": "is", "were": "was", "have": "has", "fit": "fits", "wait": "waits", "run": "runs"}
_ODD = {"processes": "process", "entries": "entry", "retries": "retry", "tries": "try"}
_ODD |= {"priorities": "priority"}


def singular(text: str) -> str:
    """The text with what it says of one thing said of one."""
    return _ONE.sub(_said, text) if "1 " in text else text


def _said(found: re.Match[str]) -> str:
    things, after = found[2], (found[3] or "").removeprefix(" ")
    thing = _ODD.get(things, things[:-1])
    rest = f" {_VERBS.get(after, after)}" if after else ""
    return f"1 {found[1]}{thing}{rest}"
