"""Pages can be followed: links lead somewhere, commands and flags that they name exist."""

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rackwright.cli.__main__ import rackwright
from tests.tidy.source import ROOT, files

PAGES = [path for path in files() if path.suffix == ".md"]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MODULE = re.compile(r"python -m (rackwright\.[a-z_.]+[a-z])")  # rackwright.MODULE: any
WEB = ("http://", "https://", "mailto:")


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", text)


def anchors(path: Path) -> set[str]:
    """The fragments by which headings of a page are linked."""
    found = set()
    for heading in HEADING.findall(prose(path.read_text(encoding="utf-8"))):
        plain = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        found.add(plain.strip().replace(" ", "-"))
    return found


def broken(page: Path) -> Iterator[str]:
    """Links of a page that lead nowhere."""
    for found in LINK.findall(prose(page.read_text(encoding="utf-8"))):
        link = found[0] or found[1]
        if link.startswith(WEB):
            continue
        target, _, fragment = link.partition("#")
        there = (page.parent / target).resolve() if target else page
        if not there.exists() or (fragment and fragment not in anchors(there)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_resolve(page: Path) -> None:
    assert list(broken(page)) == []


def code(text: str) -> Iterator[str]:
    """Lines of code of a page: of its blocks, and what stands in its sentences as code."""
    for _, kind, block in FENCE.findall(text):
        if kind != "mermaid":
            yield from block.replace("\\\n", " ").splitlines()
    yield from (" ".join(span.split()) for span in SPAN.findall(prose(text)))


def commands(text: str) -> Iterator[list[str]]:
    """The words of each `rackwright ...` that a page shows, without the program's name."""
    for line in code(text):
        line = line.strip().removeprefix("$ ")
        line = line.rpartition("| ")[2] if "| rackwright" in line else line
        if re.match(r"rackwright( |$)", line):
            yield shlex.split(line)[1:]


def unknown(words: list[str]) -> str | None:
    """What of a command line does not exist."""
    command: click.Command = rackwright
    context = click.Context(rackwright, info_name="rackwright")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            return f"command {words[0]}"
        command, words = found, words[1:]
    known = {"--help", "-h"}
    for parameter in command.params:
        known |= {*parameter.opts, *parameter.secondary_opts}
    named = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    return next((f"flag {name} of {command.name}" for name in named if name not in known), None)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_and_their_flags_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = [(words, unknown(words)) for words in commands(text)]
    assert [(words, what) for words, what in found if what is not None] == []


def test_what_does_not_exist_is_found() -> None:
    assert unknown(["submit", "job.yaml", "--wait", "--set", "nodes=3"]) is None
    assert unknown(["policy", "show", "--changed"]) is None
    assert unknown(["submit", "--soon"]) == "flag --soon of submit"
    assert unknown(["policy", "mend"]) == "command mend"
    assert unknown(["dream"]) == "command dream"
    assert list(commands("`rackwright up` and\n```\n$ echo a | rackwright submit -\n```\n")) == [
        ["submit", "-"],
        ["up"],
    ]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_modules_exist(page: Path) -> None:
    named = set(MODULE.findall(page.read_text(encoding="utf-8")))
    assert {name for name in named if importlib.util.find_spec(name) is None} == set()


def test_every_page_of_docs_is_in_its_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in pages if f"]({name})" not in index} == set()
