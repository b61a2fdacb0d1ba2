"""The software before this: a tree of it, and its image."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.engine import ROOT, build

PREVIOUS = "rackwright:previous"
TREE_ENV = "RACKWRIGHT_PREVIOUS_TREE"  # says that the image is built, and where its tree is


def build_previous(folder: Path) -> Path:
    """The tree of the commit before the last that changed the code, in `folder`, and `PREVIOUS`.

    Without history it is this tree. A release pipeline has the image of the last release instead.
    """
    asked = subprocess.run(
        ["git", "log", "-2", "--format=%H", "--", "proto", "libs", "services"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    for commit in asked.stdout.split()[1:]:
        packed = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, capture_output=True, check=False
        )
        if packed.returncode == 0:
            subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
            build(PREVIOUS, folder, VERSION="previous")
            return folder
    build(PREVIOUS, ROOT, VERSION="previous")
    return ROOT
