"""How a command ends: the exit codes, and an error that is told in one line, or as JSON."""

import json
import re

import click

OK = 0
FAILED = 1
BAD_INPUT = 2
UNREACHABLE = 3
UNANSWERED = 4

EXIT_CODES = """\b
Exit codes: 0 done; 1 refused or failed; 2 usage or bad input;
3 the cell cannot be reached; 4 not answered in time; 141 nobody reads the output.
With --json an error is told as JSON: {"error": {"code", "field", "text"}}."""


class Failure(click.ClickException):
    """A command that did not do what it was asked. `field`: of what was given, where one is known;
    `code`: a word for programs."""

    code = "refused"

    def __init__(self, message: str, *, field: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.code = self.code if code is None else code


class Refused(Failure):
    """The cell said no; `answer` is what it said, as JSON."""

    def __init__(self, message: str, *, code: str, field: str, answer: bytes) -> None:
        super().__init__(message, code=code, field=field)
        self.answer = answer


class BadInput(Failure):
    """What was typed or read cannot be used."""

    exit_code = BAD_INPUT
    code = "bad-input"


class Unreachable(Failure):
    """There is nobody to talk to."""

    exit_code = UNREACHABLE
    code = "unreachable"


class Unanswered(Failure):
    """Somebody was asked and has not said anything yet."""

    exit_code = UNANSWERED
    code = "unanswered"


OPTION = re.compile(r"--[a-z][a-z0-9-]*(?=[ :])")


def as_json(error: click.ClickException) -> str:
    """The same error for programs: `{"error": {"code", "field", "text"}}`, after what the cell said
    if it did."""
    text = " ".join(error.format_message().split())
    code = error.code if isinstance(error, Failure) else "usage"
    told = json.loads(error.answer) if isinstance(error, Refused) else {}
    return json.dumps(told | {"error": {"code": code, "field": _field(error, text), "text": text}})


def _field(error: click.ClickException, text: str) -> str | None:
    """The option, argument or field of a file that is wrong; None where none is."""
    if isinstance(error, Failure) and error.field:
        return error.field
    if isinstance(error, click.NoSuchOption):
        return error.option_name
    if isinstance(error, click.BadParameter):
        parameter = error.param
        if isinstance(parameter, click.Option):
            return max(parameter.opts, key=len)
        return None if parameter is None else parameter.name
    found = OPTION.match(text)
    return found[0] if found is not None else None
