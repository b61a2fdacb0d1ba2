"""What the image installs is what the project pins and needs."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PIN = re.compile(
    r"^([A-Za-z0-9_.-]+)==(\S+)[^\n]*((?:\n +--hash=sha256:[0-9a-f]{64} ?\\?)+)", re.MULTILINE
)


def pins(name: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Version and hashes by package of a file of pins."""
    found = PIN.findall((ROOT / name).read_text())
    return {
        package: (version, frozenset(re.findall(r"sha256:(\w+)", hashes)))
        for package, version, hashes in found
    }


def test_the_image_installs_pins_of_the_project() -> None:
    project = pins("constraints.txt")
    for name in ("deploy/requirements.txt", "deploy/requirements-build.txt"):
        found = pins(name)
        assert found
        different = {one: pin for one, pin in found.items() if project.get(one) != pin}
        assert different == {}, "run `make constraints`"


def test_every_direct_dependency_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["embedded"], *extras["otlp"], *extras["nvml"]]
    names = {re.split(r"[<>=\[]", one)[0].lower() for one in wanted}
    assert names - set(pins("deploy/requirements.txt")) == set()
