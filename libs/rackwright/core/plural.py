"""Numbers in sentences: `1 nodes are free` becomes `1 node is free`, and none in powers of ten."""

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


def digits(number: float) -> str:
    """Three digits of a number that is not negative: `1,813`, `53.2`, `0.0143`, `under 0.0001`."""
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}" if number >= 0.0001 or not number else "under 0.0001"
