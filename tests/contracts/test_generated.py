"""The committed schemas and the AsyncAPI document are what the types say today."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from rackwright.wire import schema as generator
from rackwright.wire.asyncapi import PARAMETER
from rackwright.wire.ids import NAME_PATTERN, WORKER_PATTERN
from rackwright.wire.subjects import SHARDS
from tests.contracts.files import PROTO, schema

HINT = "run `make schemas`"
DOCUMENT: dict[str, Any] = yaml.safe_load((PROTO / "asyncapi.yaml").read_bytes())
REFERENCE = {
    "type": "object",
    "required": ["$ref"],
    "properties": {"$ref": {"type": "string"}},
    "additionalProperties": False,
}
# The parts of AsyncAPI 3.0 that the document uses, closed: a misspelt field is an error.
STRUCTURE: dict[str, Any] = {
    "type": "object",
    "required": ["asyncapi", "info"],
    "properties": {
        "asyncapi": {"const": "3.0.0"},
        "info": {
            "type": "object",
            "required": ["title", "version"],
            "properties": {k: {"type": "string"} for k in ("title", "version", "description")},
            "additionalProperties": False,
        },
        "defaultContentType": {"type": "string"},
        "channels": {"additionalProperties": {"$ref": "#/$defs/channel"}},
        "operations": {"additionalProperties": {"$ref": "#/$defs/operation"}},
        "components": {
            "properties": {
                "messages": {
                    "patternProperties": {r"^[\w.-]+$": {"$ref": "#/$defs/message"}},
                    "additionalProperties": False,
                }
            },
            "additionalProperties": False,
        },
    },
    "patternProperties": {"^x-": {}},
    "additionalProperties": False,
    "$defs": {
        "channel": {
            "type": "object",
            "properties": {
                "address": {"type": "string"},
                "description": {"type": "string"},
                "messages": {"additionalProperties": REFERENCE},
                "parameters": {"additionalProperties": {"$ref": "#/$defs/parameter"}},
            },
            "patternProperties": {"^x-": {}},
            "additionalProperties": False,
        },
        "parameter": {
            "type": "object",
            "properties": {
                "description": {"type": "string"},
                "enum": {"type": "array", "items": {"type": "string"}},
                "examples": {"type": "array", "items": {"type": "string"}},
            },
            "additionalProperties": False,
        },
        "operation": {
            "type": "object",
            "required": ["action", "channel"],
            "properties": {
                "action": {"enum": ["send", "receive"]},
                "channel": REFERENCE,
                "messages": {"type": "array", "items": REFERENCE},
            },
            "additionalProperties": False,
        },
        "message": {
            "type": "object",
            "required": ["payload"],
            "properties": {
                "name": {"type": "string"},
                "title": {"type": "string"},
                "summary": {"type": "string"},
                "contentType": {"type": "string"},
                "payload": {
                    "type": "object",
                    "required": ["schemaFormat", "schema"],
                    "properties": {"schemaFormat": {"type": "string"}, "schema": REFERENCE},
                    "additionalProperties": False,
                },
            },
            "additionalProperties": False,
        },
    },
}


def references(node: Any) -> list[str]:
    """Every $ref below a node."""
    match node:
        case {"$ref": str() as target}:
            return [target]
        case dict():
            return [ref for part in node.values() for ref in references(part)]
        case list():
            return [ref for part in node for ref in references(part)]
        case _:
            return []


def resolves(ref: str) -> bool:
    """Whether a $ref of the document leads somewhere."""
    if not ref.startswith("#/"):
        return (PROTO / ref).is_file()
    node: Any = DOCUMENT
    for step in ref[2:].split("/"):
        if step not in node:
            return False
        node = node[step]
    return True


def test_generated_files_are_current() -> None:
    made = generator.files()
    stale = [
        name
        for name, data in made.items()
        if not (PROTO / name).is_file() or (PROTO / name).read_bytes() != data
    ]
    assert stale == [], HINT
    there = {str(path.relative_to(PROTO)) for path in (PROTO / "schemas").rglob("*.json")}
    assert there - set(made) == set(), HINT


def test_generating_twice_gives_the_same_and_removes_the_old(tmp_path: Path) -> None:
    old = tmp_path / "schemas" / "v1" / "job.dreamt.json"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    assert generator.main(tmp_path) == 0
    written = {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert written == generator.files()


def test_constraints_reach_the_schemas() -> None:
    placement = schema("job.placed")["$defs"]["SlicePlacement"]["properties"]
    assert placement["rack"]["pattern"] == NAME_PATTERN
    assert (placement["nodes"]["minimum"], placement["nodes"]["maximum"]) == (0, 2**62 - 1)
    entries = schema("job.placed")["properties"]["entries"]
    assert (entries["minItems"], entries["maxItems"]) == (1, 64)
    assert schema("worker.failed")["$defs"]["WorkerFailed"]["properties"]["worker"]["pattern"] == (
        WORKER_PATTERN
    )
    nodes = schema("value.assignments")["$defs"]["RackAssignments"]["properties"]["nodes"]
    assert list(nodes["patternProperties"]) == [NAME_PATTERN]
    assert nodes["additionalProperties"] is False
    assert schema("wish.submit.bare")["$defs"]["JobSpec"]["additionalProperties"] is False
    assert "additionalProperties" not in schema("signal.fault")["$defs"]["Fault"]
    assert schema("job.placed")["properties"]["type"] == {"const": "job.placed"}


def test_policy_is_explained() -> None:
    for name, knob in schema("policy.set")["$defs"]["Policy"]["properties"].items():
        assert knob["description"], name
    assert schema("policy.set")["$defs"]["Policy"]["properties"]["fence_after_s"]["x-unit"] == "s"


def test_the_document_is_asyncapi() -> None:
    errors = Draft202012Validator(STRUCTURE).iter_errors(DOCUMENT)
    assert [f"{list(error.path)}: {error.message}" for error in errors] == []


def test_a_wrong_document_is_not() -> None:
    wrong = json.loads(json.dumps(DOCUMENT))
    wrong["operations"]["placer.send.ledger"]["action"] = "publish"
    wrong["channels"]["echo"]["adress"] = "x"
    assert len(list(Draft202012Validator(STRUCTURE).iter_errors(wrong))) == 2


def test_every_reference_of_the_document_resolves() -> None:
    assert [ref for ref in references(DOCUMENT) if not resolves(ref)] == []
    assert not resolves("#/channels/nowhere")
    assert not resolves("schemas/v1/job.dreamt.json")


def test_operations_use_messages_of_their_channel() -> None:
    for name, operation in DOCUMENT["operations"].items():
        here = operation["channel"]["$ref"]
        strays = [m["$ref"] for m in operation["messages"] if not m["$ref"].startswith(f"{here}/")]
        assert strays == [], name


@pytest.mark.parametrize("channel", sorted(DOCUMENT["channels"]))
def test_parameters_are_those_of_the_address(channel: str) -> None:
    described = DOCUMENT["channels"][channel]
    assert set(PARAMETER.findall(described["address"])) == set(described["parameters"])


def test_shards_are_two_digits() -> None:
    assert DOCUMENT["channels"]["signal"]["parameters"]["shard"]["examples"] == ["00", "63"]
    assert SHARDS == 64
