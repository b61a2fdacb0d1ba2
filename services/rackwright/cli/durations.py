"""Durations as people type them: 90, 90s, 30m, 4h, 2d, 1h30m."""

import re

import click

from rackwright.cli.numbers import shortened

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+|\d+(?:\.\d+)?")
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def seconds(text: str) -> float | None:
    """Seconds of a duration; None if it is none, or not above zero."""
    told = text.strip().lower()
    if _WHOLE.fullmatch(told) is None:
        return None
    parts = _PART.findall(told)
    found = sum(float(count) * UNITS[unit] for count, unit in parts) if parts else float(told)
    return found if 0 < found < 1e9 else None


def duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Callback of an option: seconds, or a usage error."""
    if value is None:
        return None
    found = seconds(value)
    if found is None:
        raise click.BadParameter(f"{shortened(value)} is no duration such as 90s, 30m, 4h or 1h30m")
    return found
