"""Who stops reading ends a command quietly; what cannot be written is told."""

import os
import subprocess
import sys

import pytest

PROGRAM = (sys.executable, "-m", "rackwright.cli")
COMMANDS = (
    ["--help"],
    ["jobs", "--help"],
    ["completion", "bash"],
    ["users"],
    ["plan", "--racks", "4", "--unavailable", "0.02"],
    ["plan", "--racks", "4", "--unavailable", "0.02", "--json"],
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_closed_pipe_ends_a_command_without_a_word(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*PROGRAM, *words], stdout=writer, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_nor_does_an_error_that_nobody_reads_say_more() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*PROGRAM, "fly"], stdout=subprocess.PIPE, stderr=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stdout) == (141, b"")


def test_a_full_disk_is_told_in_a_line() -> None:
    with open("/dev/full", "w") as full:
        words = [*PROGRAM, "plan", "--racks", "4", "--unavailable", "0.02"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    told = "Error: output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_no_output_at_all_is_no_error() -> None:
    words = [
        "sh",
        "-c",
        '"$@" >&-',
        "sh",
        *PROGRAM,
        "plan",
        "--racks",
        "4",
        "--unavailable",
        "0.02",
    ]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")
