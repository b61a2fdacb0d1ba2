"""How a command ends: the exit codes, and an error that is told in one line."""

import click

OK = 0
FAILED = 1
BAD_INPUT = 2
UNREACHABLE = 3
UNANSWERED = 4

EXIT_CODES = """\b
Exit codes: 0 done; 1 refused or failed; 2 usage or bad input;
3 the cell cannot be reached; 4 not answered in time."""


class Failure(click.ClickException):
    """A command that did not do what it was asked."""


class BadInput(Failure):
    """What was typed or read cannot be used."""

    exit_code = BAD_INPUT


class Unreachable(Failure):
    """There is nobody to talk to."""

    exit_code = UNREACHABLE


class Unanswered(Failure):
    """Somebody was asked and has not said anything yet."""

    exit_code = UNANSWERED
