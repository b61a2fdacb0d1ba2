"""Tables of the settings for docs/policies.md: `python -m rackwright.wire.knobs` writes them anew.

A page says where a table stands and which settings are in it by a comment,
`<!-- knobs: slice_nodes, spares_large -->`; the table goes between it and `<!-- /knobs -->`.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from annotated_types import Ge, Gt, Le

from rackwright.wire.policy import Policy

PAGE = Path(__file__).parents[3] / "docs" / "policies.md"
BLOCK = re.compile(
    r"(?P<head><!-- knobs: (?P<names>[a-z0-9_, ]+) -->\n).*?(?P<foot><!-- /knobs -->)", re.DOTALL
)
HEAD = "| setting | default | unit | allowed | why so |\n|---|---|---|---|---|\n"
HUGE = 1 << 62  # a limit that only keeps a number in 64 bits


def named(text: str) -> list[str]:
    """The settings in the tables of a page, in order."""
    return [name for block in BLOCK.finditer(text) for name in _names(block)]


def filled(text: str) -> str:
    """The page with each of its tables written anew. Raises KeyError for an unknown setting."""
    return BLOCK.sub(lambda block: f"{block['head']}{table(_names(block))}{block['foot']}", text)


def table(names: Sequence[str]) -> str:
    """A table of these settings."""
    known = {field.name: field for field in fields(Policy)}
    hints = get_type_hints(Policy, include_extras=True)
    return HEAD + "".join(_row(known[name], hints[name]) for name in names)


def _names(block: re.Match[str]) -> list[str]:
    return [name.strip() for name in block["names"].split(",")]


def _row(field: "Field[Any]", hint: Any) -> str:
    unit, why = field.metadata["unit"], field.metadata["why"]
    return f"| `{field.name}` | {_default(field)} | {unit} | {_allowed(hint)} | {why} |\n"


def _default(field: "Field[Any]") -> str:
    if field.default is MISSING:
        return "none"
    match field.default:
        case bool(value):
            return "yes" if value else "no"
        case float(value):
            return f"{value:,.10g}"
        case ():
            return "none"
        case value:
            return str(value)


def _allowed(hint: Any) -> str:
    """The limits in a type, in words."""
    if hint is bool:
        return "yes, no"
    marks = _marks(hint)
    least = next((f"{mark.ge:g}" for mark in marks if isinstance(mark, Ge)), "")
    above = next((f"above {mark.gt:g}" for mark in marks if isinstance(mark, Gt)), "")
    most = next((f"{mark.le:g}" for mark in marks if _is_limit(mark)), "")
    if least and most:
        return f"{least} to {most}"
    return ", ".join(
        part for part in (least and f"{least} or more", above, most and f"at most {most}") if part
    )


def _is_limit(mark: Any) -> bool:
    return isinstance(mark, Le) and int(mark.le) < HUGE  # type: ignore[call-overload]


def _marks(hint: Any) -> list[Any]:
    """Annotations of a type and of the types in it: a mapping's limits are its values'."""
    found = list(getattr(hint, "__metadata__", ()))
    for inner in get_args(hint):
        if isinstance(inner, type) or get_args(inner):
            found += _marks(inner)
    return found


def main(page: Path = PAGE) -> int:
    """Write the page's tables anew."""
    page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
