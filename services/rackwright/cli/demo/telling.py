"""The timeline of the demo on the screen, and the list of claims that were checked."""

import time
from dataclasses import dataclass, field

from rich.console import Console

SLOW_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Something the demo promised, and whether it held."""

    text: str
    held: bool


@dataclass(slots=True)
class Teller:
    """Prints what happens with the time since the start; remembers every claim."""

    console: Console
    began: float = field(default_factory=time.monotonic)
    claims: list[Claim] = field(default_factory=list)

    def act(self, letter: str, title: str) -> None:
        """A new act begins."""
        self.console.print()
        self.console.print(f"[bold]({letter}) {title}[/bold]")

    def say(self, text: str, took_s: float | None = None) -> None:
        """Something happened."""
        measured = f"  [cyan]{_shown(took_s)}[/cyan]" if took_s is not None else ""
        self.console.print(f"  {time.monotonic() - self.began:6.2f} s  {text}{measured}")

    def claim(self, text: str, held: bool) -> bool:
        """A claim was checked."""
        self.claims.append(Claim(text=text, held=held))
        mark = "[green]ok[/green]  " if held else "[red bold]FAIL[/red bold]"
        self.console.print(f"            {mark} {text}")
        return held

    @property
    def failed(self) -> list[Claim]:
        """Claims that did not hold."""
        return [claim for claim in self.claims if not claim.held]


def _shown(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
