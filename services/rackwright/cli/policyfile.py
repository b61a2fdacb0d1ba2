"""A policy file: YAML or JSON with the settings that differ from what the cell has."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from rackwright.cli.failures import BadInput
from rackwright.core.policy.settings import beyond
from rackwright.core.reasons import sentence
from rackwright.host.files.text import Document, decode
from rackwright.host.files.yamltext import read_yaml
from rackwright.wire.codec import Unreadable, read_value, to_json
from rackwright.wire.nodes import RackSpec
from rackwright.wire.policy import Policy

MAX_POLICY_FILE = 65_536


def read_policy(data: bytes, *, name: str, base: Policy | None = None) -> Policy:
    """The settings of a file; what it does not name is as in `base`. Raises FileError."""
    document = read_yaml(decode(data, name=name, limit=MAX_POLICY_FILE), name=name)
    told = document.mapping((), document.value, "a policy")
    document.only((), told, [field.name for field in fields(Policy)])
    return _merged(document, told, base or Policy())


def with_setting(base: Policy, text: str, *, name: str) -> Policy:
    """`base` with the one setting of a SETTING=VALUE. Raises BadInput, FileError."""
    knob, equals, value = text.partition("=")
    if not equals:
        raise BadInput(f"{name}: {text!r} is no SETTING=VALUE: docs/policies.md lists settings")
    if knob not in {field.name for field in fields(Policy)}:
        what = f"unknown setting {knob!r}: docs/policies.md lists them"
        raise BadInput(f"{name}: {what} (SETTING=VALUE)")
    return read_policy(f"{knob}: {value}".encode(), name=f"{name} {text}", base=base)


def suits(policy: Policy, racks: Sequence[RackSpec], *, name: str) -> Policy:
    """The settings, if they can stand in a cell of these racks. Raises BadInput."""
    gpus = sum(len(rack.nodes) * rack.gpus_per_node for rack in racks)
    problem = beyond(len(racks), gpus, policy)
    if problem is not None:
        raise BadInput(f"{name}: {sentence(problem)}")
    return policy


def _merged(document: Document, told: Mapping[str, Any], base: Policy) -> Policy:
    import json

    values: dict[str, Any] = json.loads(to_json(base))
    for key, value in told.items():
        known = values.get(key)
        whole = isinstance(known, float) and isinstance(value, int)
        values[key] = float(value) if whole and not isinstance(value, bool) else value
    try:
        return read_value(Policy, values)
    except Unreadable as error:
        raise document.unreadable(error) from error
