"""`rackwright`: the command line. Commands are loaded when they are used, so that help is quick."""

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from rackwright.cli import output
from rackwright.cli.failures import EXIT_CODES, as_json
from rackwright.cli.numbers import shortened
from rackwright.wire.plainly import meant


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is, and its help in a line."""

    where: str
    text: str


COMMANDS: dict[str, dict[str, Entry]] = {
    "A cell on this machine": {
        "up": Entry("up:up", "Start a cell: bus, services, agents; runs until stopped."),
        "demo": Entry("demo:demo", "Show failures, swaps, moves and defragmentation, live."),
    },
    "Before there is a cell": {
        "plan": Entry("plan:plan", "Usable nodes, interruptions, slice size and spares: exact."),
        "simulate": Entry("simulate:simulate", "Run policies on a workload in virtual time."),
        "replay": Entry("replay:replay", "Fold a recorded ledger to any point, and say why."),
    },
    "Jobs": {
        "submit": Entry("submit:submit", "Submit a job file."),
        "jobs": Entry("jobs:jobs", "List jobs."),
        "job": Entry("jobs:job", "All about one job: place, why it waits, its story."),
        "logs": Entry("logs:logs", "What the workers of a job have printed."),
        "cancel": Entry("jobs:cancel", "End jobs."),
        "resume": Entry("jobs:resume", "Let a suspended job be queued again."),
        "swap": Entry("jobs:swap", "Replace the node of one rank."),
    },
    "The cell": {
        "racks": Entry("racks:racks", "A picture of each rack: nodes, jobs, spares, health."),
        "node": Entry("nodes:node", "All about one node."),
        "events": Entry("events:events", "What has happened, and what happens."),
        "deadletters": Entry("deadletters:deadletters", "What nobody could read, and why."),
        "services": Entry("services:services", "Which services answer, and what is missing."),
        "stats": Entry("stats:stats", "The cell in numbers."),
        "defrag": Entry("defrag:defrag", "What defragmentation would do for a job."),
        "verify": Entry("verify:verify", "Check every safety property on the whole ledger."),
    },
    "Operators": {
        "cordon": Entry("nodes:cordon", "No new work on a node."),
        "drain": Entry("nodes:drain", "No new work on a node, and what runs leaves it."),
        "uncordon": Entry("nodes:uncordon", "Take work again on a node."),
        "repaired": Entry("nodes:repaired", "Say that a node was repaired."),
        "repairing": Entry("nodes:repairing", "Say when a node will be repaired."),
        "hold": Entry("racks:hold", "Give a rack's free nodes to nobody for a while."),
        "release": Entry("racks:release", "End a hold."),
        "maintain": Entry("racks:maintain", "Plan the absence of racks; work leaves in time."),
        "pin": Entry("jobs:pin", "Let nobody move or evict a job."),
        "approve": Entry("jobs:approve", "Let a plan be carried out for a job."),
        "pause": Entry("automations:pause", "Stop an automation for a while."),
        "unpause": Entry("automations:unpause", "Let an automation act again."),
        "close-breaker": Entry("automations:close_breaker", "Act on the faults that opened it."),
        "upgrade": Entry("automations:upgrade", "Use what a new release of all services brought."),
        "policy": Entry("policy:policy", "Show or set the settings of the cell."),
        "inject": Entry("inject:inject", "Let a virtual node fail, to see what happens."),
    },
    "A cell on a cluster": {
        "create": Entry("create:create", "Make streams, ledger and racks on a bus that is there."),
        "users": Entry("users:users", "Print the users of the bus, for nats-server."),
        "credentials": Entry("users:credentials", "Make a password for each of them."),
    },
    "Shell": {
        "completion": Entry("completion:completion", "Print the script for your shell."),
    },
}


class Commands(click.Group):
    """Commands by the table above."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """As a program; with --json also what goes wrong is told as JSON, on standard output."""
        words = sys.argv[1:] if args is None else list(args)
        asked = standalone_mode and "--json" in words
        try:
            done = super().main(
                words,
                prog_name,
                complete_var,
                standalone_mode=standalone_mode and not asked,
                **extra,
            )
        except click.ClickException as error:
            if not asked:
                raise
            click.echo(as_json(error))
            sys.exit(error.exit_code)
        except click.Abort:
            if not asked:
                raise
            sys.exit(1)
        if asked:
            sys.exit(done if isinstance(done, int) else 0)
        return done

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of the table."""
        return [name for group in COMMANDS.values() for name in group]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command."""
        for group in COMMANDS.values():
            if cmd_name in group:
                module, _, name = group[cmd_name].where.partition(":")
                loaded = importlib.import_module(f"rackwright.cli.{module}")
                command: click.Command = getattr(loaded, name)
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was asked for, or which there are."""
        names = self.list_commands(ctx)
        if args[0] in names or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        right = meant(args[0], names, most=3)
        raise click.UsageError(f"no command is called {shortened(args[0])}; {right}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Help from the table: nothing is loaded."""
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.text) for name, entry in group.items()])


@click.group(
    cls=Commands,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="rackwright", prog_name="rackwright")
def rackwright() -> None:
    """Schedule GPU work on racks that behave like one server.

    \b
    Start a cell and look at it from another terminal:
      rackwright up --racks 4 --pretend
      rackwright submit job.yaml --wait
      rackwright racks

    Commands find the cell by its state directory (--state-dir, RACKWRIGHT_STATE_DIR; default
    ~/.local/state/rackwright), in which `up` writes how to reach it; or say --nats, --cell, --user
    and --password-file.
    """


def main() -> None:
    """The program `rackwright`."""
    output.guard()
    rackwright(prog_name="rackwright")


if __name__ == "__main__":
    main()
