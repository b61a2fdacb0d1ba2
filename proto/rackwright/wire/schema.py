"""Writes the JSON Schemas and the AsyncAPI document of the wire: `python -m` this module.

Everything is derived from the types, sorted, so that equal types give equal files.
"""

import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from rackwright.wire import asyncapi
from rackwright.wire.catalog import ALL_TYPES
from rackwright.wire.codec import adapter, kind_of, message_adapter, to_json
from rackwright.wire.message import Body
from rackwright.wire.policy import Policy
from rackwright.wire.wishes import ANY_WISH

DRAFT = "https://json-schema.org/draft/2020-12/schema"
PROTO = Path(__file__).parents[2]

Json = dict[str, Any]


def _tidy(node: Any) -> None:
    """Drop the titles that repeat a field's name, and close maps whose keys have a grammar."""
    match node:
        case dict():
            for part in node.get("properties", {}).values():
                part.pop("title", None)
            if "patternProperties" in node:
                node["additionalProperties"] = False
            for part in node.values():
                _tidy(part)
        case list():
            for part in node:
                _tidy(part)
        case _:
            pass


def _explain_policy(schema: Json) -> None:
    """The unit of each setting, and why its default is what it is."""
    policy = schema.get("$defs", {}).get("Policy")
    if policy is not None:
        for knob in fields(Policy):
            told = policy["properties"][knob.name]
            told["description"] = knob.metadata["why"]
            if knob.metadata["unit"]:
                told["x-unit"] = knob.metadata["unit"]


def _finish(schema: Json, name: str, version: int) -> Json:
    _tidy(schema)
    _explain_policy(schema)
    return {"$schema": DRAFT, "$id": f"urn:rackwright:v{version}:{name}", **schema, "title": name}


def message_schema(type_name: str) -> Json:
    """The schema of the whole message of one type: commit or envelope. Raises UnknownType."""
    schema = message_adapter(type_name).json_schema()
    version = kind_of(type_name).VERSION
    schema["properties"]["type"] = {"const": type_name}
    schema["properties"]["v"] = {"const": version}
    return _finish(schema, type_name, version)


def bare_schema(kind: type[Body]) -> Json:
    """The schema of a wish without an envelope, as any client may publish it."""
    return _finish(adapter(kind).json_schema(), f"{kind.TYPE}.bare", kind.VERSION)


def files() -> dict[str, bytes]:
    """Every generated file by its path under `proto/`."""
    schemas = [message_schema(type_name) for type_name in ALL_TYPES]
    schemas += [bare_schema(wish) for wish in ANY_WISH]
    made = {asyncapi.schema_path(s["title"]): to_json(s, indent=True) + b"\n" for s in schemas}
    made["asyncapi.yaml"] = asyncapi.document()
    return made


def main(root: Path = PROTO) -> int:
    """Write all files anew and remove schemas of types that are gone; returns the exit status."""
    made = files()
    for old in (root / "schemas").rglob("*.json"):
        if str(old.relative_to(root)) not in made:
            old.unlink()
    for name, data in made.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    sys.stdout.write(f"{len(made)} files under {root.name}/\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
