"""Who may import whom, beyond the layers that import-linter checks."""

import sys
import tomllib

import grimp
import pytest

from tests.tidy.source import ROOT, packages

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
CLOCKS_AND_WIRES = {
    name.split(".")[0] for name in SETTINGS["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
} - {"datetime"}  # its types are values; only its clocks are banned


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("rackwright", include_external_packages=True, cache_dir=None)


def package(module: str) -> str:
    """`rackwright.placer` of `rackwright.placer.machine`."""
    return ".".join(module.split(".")[:2])


def layers() -> set[str]:
    """Packages that the import-linter contract places."""
    (contract,) = SETTINGS["importlinter"]["contracts"]
    names = " | ".join(contract["layers"]).replace("(", "").replace(")", "").split(" | ")
    return {f"rackwright.{name}" for name in names}


def test_every_package_has_a_layer() -> None:
    assert {package(name) for name in packages()} - layers() == set()


def test_machines_reach_only_core_and_wire(graph: grimp.ImportGraph) -> None:
    machines = [name for name in sorted(graph.modules) if name.endswith(".machine")]
    strays = [
        f"{machine} -> {reached}"
        for machine in machines
        for reached in sorted(graph.find_upstream_modules(machine))
        if reached.startswith("rackwright.")
        and package(reached) not in {package(machine), "rackwright.core", "rackwright.wire"}
    ]
    assert strays == []


def test_machines_reach_no_clock(graph: grimp.ImportGraph) -> None:
    machines = [name for name in sorted(graph.modules) if name.endswith(".machine")]
    impure = [
        f"{machine} -> {reached}"
        for machine in machines
        for reached in sorted(graph.find_upstream_modules(machine) & CLOCKS_AND_WIRES)
    ]
    assert impure == []


def test_only_the_bus_knows_nats(graph: grimp.ImportGraph) -> None:
    knowing = graph.find_modules_that_directly_import("nats") if "nats" in graph.modules else set()
    assert {package(name) for name in knowing} - {"rackwright.bus"} == set()


def test_core_needs_little(graph: grimp.ImportGraph) -> None:
    needed = {
        imported
        for module in graph.modules
        if package(module) == "rackwright.core"
        for imported in graph.find_modules_directly_imported_by(module)
        if not imported.startswith("rackwright.") and imported not in sys.stdlib_module_names
    }
    assert needed - {"immutables"} == set()
