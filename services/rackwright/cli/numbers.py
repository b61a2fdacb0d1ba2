"""Numbers as people type them, and what would be right where they are none."""

from math import isfinite
from typing import Any

import click

SHOWN = 40  # characters of what was typed


def shortened(text: object) -> str:
    """What was typed, in quotes, however long it is."""
    told = str(text)
    return repr(told if len(told) <= SHOWN else f"{told[:SHOWN]}...")


class _Bounded(click.ParamType[Any]):
    """Says which `kind` of number would do where the type after it takes none."""

    name = "number"
    kind: str
    min: Any
    max: Any
    min_open: bool

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or a usage error that says which would do."""
        try:
            found = super().convert(value, param, ctx)
            if isfinite(found):  # bounds do not hold NaN back
                return found
        except click.BadParameter:
            pass
        rule = _bounds(self.min, self.max, open_=self.min_open)
        self.fail(f"must be {self.kind}{rule}, not {shortened(value)}", param, ctx)


class Whole(_Bounded, click.IntRange):
    """A whole number within bounds."""

    kind = "a whole number"


class Number(_Bounded, click.FloatRange):
    """A number within bounds."""

    kind = "a number"


def _bounds(low: float | None, high: float | None, *, open_: bool) -> str:
    if low is None and high is None:
        return ""
    if low is None:
        return f" of at most {high:g}"
    least = f"above {low:g}" if open_ else f"from {low:g}"
    if high is None:
        return f" {least}" if open_ else f" of {low:g} or more"
    return f" {least} to {high:g}"
