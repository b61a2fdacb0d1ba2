"""The frozen and generated files of the contracts, as the tests read them."""

import json
from pathlib import Path
from typing import Any

PROTO = Path(__file__).parents[2] / "proto"
EXAMPLES = PROTO / "examples" / "v1"


def examples() -> list[str]:
    """Names of the frozen examples: a type name, or `<wish>.bare`."""
    return sorted(path.name.removesuffix(".json") for path in EXAMPLES.glob("*.json"))


def example(name: str) -> bytes:
    """One frozen example, as it would come from the bus."""
    return (EXAMPLES / f"{name}.json").read_bytes()


def schema(name: str) -> dict[str, Any]:
    """One generated JSON Schema."""
    loaded: dict[str, Any] = json.loads((PROTO / "schemas" / "v1" / f"{name}.json").read_bytes())
    return loaded
