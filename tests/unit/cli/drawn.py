"""What people see, without colours and without the spaces at the ends of lines."""

from io import StringIO

from rich.console import Console, RenderableType


def drawn(thing: RenderableType, width: int = 120) -> list[str]:
    """Its lines."""
    out = StringIO()
    Console(file=out, width=width, color_system=None, highlight=False).print(thing)
    return [line.rstrip() for line in out.getvalue().splitlines()]
