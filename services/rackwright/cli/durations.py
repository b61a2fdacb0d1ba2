"""Durations as people type them: 90, 90s, 30m, 4h, 2d, 1h30m."""

import re

import click

from rackwright.cli.numbers import shortened

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
MOST_S = 1e9  # 31 years
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+|\d+(?:\.\d+)?")
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def seconds(text: str) -> float | None:
    """Seconds of a duration; None if it is none, or not above zero."""
    found = _told(text.strip().lower())
    return found if found is not None and 0 < found < MOST_S else None


def _told(told: str) -> float | None:
    if _WHOLE.fullmatch(told) is None:
        return None
    parts = _PART.findall(told)
    return sum(float(count) * UNITS[unit] for count, unit in parts) if parts else float(told)


def duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Callback of an option: seconds, or a usage error."""
    if value is None:
        return None
    found = seconds(value)
    if found is None:
        told = _told(value.strip().lower().removeprefix("-"))
        wrong = "is no duration" if told is None else "is not above zero"
        if told is not None and told >= MOST_S:
            wrong = "is too long"
        raise click.BadParameter(
            f"{shortened(value)} {wrong}; say for instance 90s, 30m, 4h, 1h30m"
        )
    return found
