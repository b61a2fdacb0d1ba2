"""What a strict reader finds wrong with a value, in plain words: what would be right."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

from rackwright.wire.ids import MESSAGE_PATTERN, NAME_PATTERN, NAME_RULE, WORKER_PATTERN

_IN_WORDS = {
    "Unexpected keyword argument": "is not known here",
    "Missing required keyword only argument": "is missing",
    "Field required": "is missing",
    "Input should be a valid integer": "must be a whole number",
    "Input should be a valid number": "must be a number",
    "Input should be a valid boolean": "must be true or false",
    "Input should be a valid string": "must be a text",
    "Input should be a valid array": "must be a list",
    "Input should be an object": "must be a mapping",
}
_RULES = {
    NAME_PATTERN: NAME_RULE,
    WORKER_PATTERN: "JOB/RANK/INCARNATION without leading zeros, such as train/0/1",
    MESSAGE_PATTERN: "1 to 127 letters, digits, or any of '_.:-', the first a letter or digit",
    r"^[^\x00]*$": "a text without a zero byte",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "letters, digits or '_', the first no digit",
    r"^SIG[A-Z0-9+-]{2,12}$": "the name of a signal, such as SIGUSR1",
}
_SHOULD = re.compile(r"(?:Input|String|Value|Tuple|List|Dictionary|Set) should ")


def plainly(problem: str) -> str:
    """The reader's sentence in words of people who have never seen the reader."""
    if problem.startswith("String should match pattern"):
        pattern = problem.partition("'")[2].rpartition("'")[0]
        return f"must be {_RULES.get(pattern, f'a text like {pattern}')}"
    if problem.startswith("Invalid JSON: "):
        return f"is not JSON: {problem.removeprefix('Invalid JSON: ')}"
    told = _IN_WORDS.get(problem) or _SHOULD.sub("must ", problem.removeprefix("Value error, "), 1)
    told = told.replace(" after validation", "")
    return told[:1].lower() + told[1:]


def meant(text: str, names: Sequence[str], most: int = 1) -> str:
    """Which of these names somebody may have meant, at most so many; else all there are."""
    near = get_close_matches(text, names, n=most)
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
