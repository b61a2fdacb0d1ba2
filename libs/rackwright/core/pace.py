"""How many decisions a commit holds while several services write.

What takes long to decide is overtaken again and again; half of it is sooner done. So a service says
half as much at once with each refusal, and twice as much with each success.
"""

from rackwright.wire.message import MAX_ENTRIES

LEAST = 8  # below, a commit costs more than what it holds


def fewer(most: int, offered: int) -> int:
    """The new limit after an offer of so many entries was refused."""
    return max(LEAST, min(most, offered) // 2)


def more(most: int) -> int:
    """The new limit after a commit that is in."""
    return min(MAX_ENTRIES, 2 * most)
