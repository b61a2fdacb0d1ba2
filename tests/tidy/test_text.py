"""What no file of the project may say, and that its README can be followed."""

import re

from tests.tidy.source import ROOT, files

# In pieces, so that this file may be read too.
HOSTS = ["python" + "hosted", "py" + "pi", "npm" + "js", "docker" + r"\.io", "gh" + r"cr\.io"]
HOSTS += ["quay" + r"\.io", "nv" + r"cr\.io", "proxy" + r"\.golang"]
FORBIDDEN = re.compile("|".join([*HOSTS, r"(?<![\w.])/(work|farm)" + "/"]), re.IGNORECASE)
TARGET = re.compile(r"^([.a-z]+):", re.MULTILINE)
COMMAND = re.compile(r"(?:^|`|\$ )make ([.a-z]+)", re.MULTILINE)


def test_no_registry_and_no_path_outside() -> None:
    named = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in files()
        for match in FORBIDDEN.finditer(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert named == []


def test_documented_targets_exist() -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    wanted = {
        f"{path.relative_to(ROOT)}: make {name}"
        for path in files()
        if path.suffix == ".md"
        for name in COMMAND.findall(path.read_text(encoding="utf-8"))
        if name not in targets
    }
    assert wanted == set()
