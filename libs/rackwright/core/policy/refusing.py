"""A field that cannot stand: what it is, what is wrong with it and what would be right."""

from rackwright.wire.reasons import Reason

Numbers = dict[str, int | float | str]


def wrong(field: str, value: int | float | str, why: str, ask: str) -> Reason:
    """A field of a spec that cannot stand: what it is, what is wrong and what would be right."""
    return Reason(
        code=f"spec.{field}", numbers={"field": field, "is": value, "why": why, "ask": ask}
    )
