"""Values set on the command line, policy files, durations, and lines of a kernel log."""

import pytest

from rackwright.agent.xid import parse_xid
from rackwright.cli.durations import seconds
from rackwright.cli.failures import BadInput
from rackwright.cli.jobtext import read
from rackwright.cli.kernel_lines import KNOWN, PCI, SYMPTOMS, line_of
from rackwright.cli.policyfile import read_policy
from rackwright.core.policy.xids import classify
from rackwright.host.files.text import FileError
from rackwright.wire.ids import NodeId, QueueName, RackId, SessionId
from rackwright.wire.jobs import Checkpoint
from rackwright.wire.policy import Policy
from rackwright.wire.signals import Fault, SignalKind


def test_values_of_a_job_file_are_changed() -> None:
    data = b"name: a\nnodes: 1\ncheckpoint: {interval_s: 60}\n"
    settings = ("nodes=32", "id=b", "checkpoint.on_notice_s=5", "labels.zone=east")
    job, spec = read(data, "job.yaml", settings)
    assert (job, spec.name, spec.nodes) == ("b", "a", 32)
    assert spec.checkpoint == Checkpoint(interval_s=60.0, on_notice_s=5.0)
    assert spec.labels == {"zone": "east"}


def test_json_is_read_too() -> None:
    assert read(b'{"name": "a", "gpus": 2}', "-", ())[1].gpus == 2
    assert read(b'{"job": "x", "spec": {"name": "a", "nodes": 1}}', "-", ())[0] == "x"
    assert read(b'{"name": "a", "gpus": 2}', "-", ("gpus=3",))[1].gpus == 3


def test_a_policy_file_changes_what_it_names() -> None:
    base = Policy(slice_nodes=8, fence_after_s=20.0)
    text = b"fence_after_s: 60\nqueue_gpus: {research: 128}\n"
    assert read_policy(text, name="p", base=base) == Policy(
        slice_nodes=8, fence_after_s=60.0, queue_gpus={QueueName("research"): 128}
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("1.5h", 5400.0),
        ("1h30m", 5400.0),
        (" 2D ", 172_800.0),
        ("0", None),
        ("", None),
        ("h", None),
        ("1y", None),
        ("-1h", None),
        ("1h 30m", None),
        ("1e9", None),
        ("99999999999d", None),
    ],
)
def test_durations(text: str, found: float | None) -> None:
    assert seconds(text) == found


def fault(text: str) -> Fault:
    """The fault an agent would report of a line."""
    line = parse_xid(text.encode())
    assert line is not None
    return Fault(
        node=NodeId("n"),
        rack=RackId("r"),
        session=SessionId("s"),
        kind=SignalKind.XID,
        xid=line.xid,
        mnemonic=line.mnemonic,
        severity=line.severity,
        words=line.words,
        line=line.line,
    )


@pytest.mark.parametrize("xid", sorted(KNOWN))
def test_known_lines_are_read_as_what_they_are(xid: int) -> None:
    found = parse_xid(line_of(xid, 2).encode())
    assert found is not None
    assert (found.xid, found.pci) == (xid, PCI[2])


@pytest.mark.parametrize("xid", sorted(SYMPTOMS))
def test_symptoms_are_symptoms(xid: int) -> None:
    assert classify(fault(line_of(xid, symptom=True))).symptom


@pytest.mark.parametrize("xid", [48, 64, 79, 95, 119, 120, 149, 154])
def test_culprits_are_culprits(xid: int) -> None:
    verdict = classify(fault(line_of(xid)))
    assert not verdict.symptom
    assert verdict.fitness == "none"


def test_other_numbers_have_a_line_too() -> None:
    assert line_of(109).endswith("109, robust channel ctxsw timeout error")
    assert line_of(998).endswith("998, unknown error")
    with pytest.raises(BadInput, match="145 and 149"):
        line_of(79, symptom=True)


def test_a_mapping_in_braces_is_yaml_unless_it_is_json() -> None:
    written = b"{name: b1, nodes: 2, run: hostname}"
    assert read(written, "job.yaml", ()) == read(b"name: b1\nnodes: 2\nrun: hostname\n", "j", ())
    as_json = b'{"job": "b1", "spec": {"name": "b1", "nodes": 2, "run": "hostname"}}'
    assert read(as_json, "job.json", ()) == read(written, "job.yaml", ())


def test_what_is_neither_is_told_as_broken_json() -> None:
    with pytest.raises(FileError, match="is not JSON"):
        read(b'{"job": "b1", "spec": {', "job.json", ())


def test_an_xid_is_of_a_gpu_that_a_tray_has() -> None:
    assert "PCI:0019:01:00" in line_of(79, 3)
    with pytest.raises(BadInput, match="--gpu: 4 must be 0 to 3"):
        line_of(79, 4)


@pytest.mark.parametrize(
    ("settings", "nodes", "env"),
    [
        (("nodes=16",), 16, {"A": "1"}),
        (("num_nodes=16",), 16, {"A": "1"}),
        (("env.A=2",), 2, {"A": "2"}),
        (("envs.B=3", "class=batch"), 2, {"A": "1", "B": "3"}),
    ],
)
def test_a_value_is_changed_under_whichever_name_the_file_has_it(
    settings: tuple[str, ...], nodes: int, env: dict[str, str]
) -> None:
    text = b"name: a\nnum_nodes: 2\nenvs: {A: 1}\nrun: hostname\n"
    _, spec = read(text, "a.yaml", settings)
    assert (spec.nodes, dict(spec.env)) == (nodes, env)
