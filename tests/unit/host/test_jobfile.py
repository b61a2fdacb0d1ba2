"""A job file says what SkyPilot users mean by it, and each error says where and what instead."""

from dataclasses import fields
from typing import Any

import pytest

from rackwright.host.files.jobfile import MAX_JOB_FILE, job_from_json, read_job
from rackwright.host.files.text import FileError
from rackwright.wire.codec import to_json
from rackwright.wire.ids import JobId, NodeId, QueueName
from rackwright.wire.jobs import (
    Checkpoint,
    CheckpointPlace,
    Group,
    JobClass,
    JobSpec,
    OnLostLease,
    Parallel,
    TopologyNeed,
    Uneven,
)
from rackwright.wire.wishes import Submit

SKYPILOT = """\
name: train
num_nodes: 32
resources:
  accelerators: GB200:4
envs:
  MODEL_SIZE: 13b
  LEARNING_RATE: 1.50
  DEBUG: yes
  COUNTRY: no
  SEED: 0012
  EMPTY: ''
setup: |
  pip install -r requirements.txt
run: |
  torchrun train.py
"""


def error(text: str | bytes) -> str:
    with pytest.raises(FileError) as caught:
        read_job(text, name="job.yaml")
    return str(caught.value)


def test_what_skypilot_users_know() -> None:
    assert read_job(SKYPILOT) == (
        JobId("train"),
        JobSpec(
            name=JobId("train"),
            nodes=32,
            labels={"gpu_model": "GB200"},
            env={
                "MODEL_SIZE": "13b",
                "LEARNING_RATE": "1.50",
                "DEBUG": "yes",
                "COUNTRY": "no",
                "SEED": "0012",
                "EMPTY": "",
            },
            setup="pip install -r requirements.txt\n",
            run="torchrun train.py\n",
        ),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resources: {cpus: 4, memory: 16+}", {"gpus": 0, "cpus": 4.0, "memory_gb": 16.0}),
        ("resources: {memory: 1.5}", {"gpus": 0, "memory_gb": 1.5}),
        ("gpus: 0\ncpus: 2", {"gpus": 0, "cpus": 2.0}),
        ("resources: {cpus: '8+', accelerators: 'GPU:1'}", {"gpus": 1, "cpus": 8.0}),
        ("num_nodes: 2\nresources: {memory: 500}", {"nodes": 2, "memory_gb": 500.0}),
    ],
)
def test_cores_and_memory_and_work_without_gpus(text: str, expected: dict[str, Any]) -> None:
    spec = read_job(f"name: a\n{text}\n", name="job.yaml")[1]
    assert spec == JobSpec(name=JobId("a"), **expected)


EVERYTHING = """\
id: run-7
name: everything
groups:
  - {name: leader, nodes: 1, topology: any}
  - {name: workers, nodes: 16, replicas: 4, min_replicas: 2, slice_nodes: 8}
slice_nodes: 8
slice_multiple: 2
uneven: balanced
max_per_rack: 2
min_slices: 3
topology: preferred
labels: {zone: 1}
same: [gpu_model]
exclude_nodes: [n7]
parallel: {tp: 4, ep: 2, pp: 8, dp: 3}
class: service
queue: research
priority: 70
preemptible: false
restartable: true
movable: true
retry_budget: 3
time_limit_s: 3600
checkpoint: {interval_s: 1800, restart_s: 300, on_notice_s: 60, where: local}
on_lost_lease: run
progress_timeout_s: 900
keep_on_failure: true
command: [python, train.py]
setup: make
env: {A: b}
grace_s: 30
notice_signal: SIGUSR1
membership_signal: SIGUSR2
"""


def test_every_field_of_a_job() -> None:
    job, spec = read_job(EVERYTHING)
    assert job == "run-7"
    assert spec == JobSpec(
        name=JobId("everything"),
        groups=(
            Group(name=JobId("leader"), nodes=1, topology=TopologyNeed.ANY),
            Group(name=JobId("workers"), nodes=16, replicas=4, min_replicas=2, slice_nodes=8),
        ),
        slice_nodes=8,
        slice_multiple=2,
        uneven=Uneven.BALANCED,
        max_per_rack=2,
        min_slices=3,
        topology=TopologyNeed.PREFERRED,
        labels={"zone": "1"},
        same=("gpu_model",),
        exclude_nodes=(NodeId("n7"),),
        parallel=Parallel(tp=4, ep=2, pp=8, dp=3),
        job_class=JobClass.SERVICE,
        queue=QueueName("research"),
        priority=70,
        preemptible=False,
        restartable=True,
        movable=True,
        retry_budget=3,
        time_limit_s=3600,
        checkpoint=Checkpoint(
            interval_s=1800, restart_s=300, on_notice_s=60, where=CheckpointPlace.LOCAL
        ),
        on_lost_lease=OnLostLease.RUN,
        progress_timeout_s=900,
        keep_on_failure=True,
        command=("python", "train.py"),
        setup="make",
        env={"A": "b"},
        grace_s=30,
        notice_signal="SIGUSR1",
        membership_signal="SIGUSR2",
    )


@pytest.mark.parametrize("field", [field.name for field in fields(JobSpec)])
def test_no_field_of_a_job_is_unknown_to_the_file(field: str) -> None:
    spec = JobSpec(name=JobId("a"), nodes=1)
    size = "" if field in ("nodes", "gpus", "groups", "name") else "nodes: 1\n"
    name = "" if field == "name" else "name: a\n"
    value = {"gpus": 4, "nodes": 1, "groups": [{"name": "g", "nodes": 1}]}.get(
        field, getattr(spec, field)
    )
    if field == "name":
        size = "nodes: 1\n"
    read_job(f"{name}{size}{field}: {to_json(value).decode()}\n")


@pytest.mark.parametrize(
    ("size", "nodes", "gpus"),
    [
        ("num_nodes: 3", 3, None),
        ("nodes: 3", 3, None),
        ("gpus: 3", None, 3),
        ("gpus: 8", None, 8),
        ("num_nodes: 2\nresources: {accelerators: {GB200: 4}}", 2, None),
        ("resources: {accelerators: 'GB200:4'}", 1, None),
        ("resources: {accelerators: 'GB200:2'}", None, 2),
        ("num_nodes: 1\nresources: {accelerators: {GB200: 1}}", None, 1),
        ("resources: {accelerators: GB200}", None, 1),
    ],
)
def test_sizes(size: str, nodes: int | None, gpus: int | None) -> None:
    _, spec = read_job(f"name: a\n{size}\n")
    assert (spec.nodes, spec.gpus) == (nodes, gpus)


def test_nodes_of_another_size() -> None:
    text = "name: a\nnum_nodes: 2\nresources: {accelerators: 'H100:8'}\n"
    assert read_job(text, gpus_per_node=8)[1].nodes == 2


def test_any_kind_of_gpu() -> None:
    assert read_job("name: a\nresources: {accelerators: 'GPU:4'}\n")[1].labels == {}


def test_a_name_may_come_from_outside() -> None:
    assert read_job("nodes: 1", default_name="train") == (
        JobId("train"),
        JobSpec(name=JobId("train"), nodes=1),
    )
    assert read_job("name: own\nnodes: 1", default_name="train")[0] == "own"


HEAD = "name: a\nnodes: 1\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: a\nnodes: 0\n", "job.yaml:2: nodes: must be 1 or more"),
        ("name: a\nnodes: -1\n", "job.yaml:2: nodes: must be greater than or equal to 1, not the"),
        ("name: a\nnodes: 2.5\n", "job.yaml:2: nodes: must be a whole number, not the number 2.5"),
        ("name: a\nnodes: '2'\n", "job.yaml:2: nodes: must be a whole number, not the text '2'"),
        ("name: a\nnodes: true\n", "job.yaml:2: nodes: must be a whole number, not true"),
        ("name: a\nnodes: 100001\n", "job.yaml:2: nodes: must be less than or equal to 100000"),
        ("name: a\ngpus: 5\n", "job.yaml:2: gpus: 5 GPUs are no whole number of nodes with 4 GPUs"),
        ("name: a\n", "say how large"),
        ("nodes: 1\n", "name: is missing"),
        ("name: a.b\nnodes: 1\n", "job.yaml:1: name: must be 1 to 63 letters"),
        ("name: a.>\nnodes: 1\n", "job.yaml:1: name: must be 1 to 63 letters"),
        (f"name: {'a' * 10_000}\nnodes: 1\n", "job.yaml:1: name: must be 1 to 63 letters"),
        (f"{HEAD}id: a*b\n", "job.yaml:3: id: must be 1 to 63 letters"),
        (f"{HEAD}time_limit: 5\n", "job.yaml:3: time_limit: is not known here; did you mean 'time"),
        (f"{HEAD}slice_node: 5\n", "did you mean 'slice_nodes'?"),
        (f"{HEAD}checkpoint:\n  interval: 5\n", "job.yaml:4: checkpoint.interval: is not known"),
        (f"{HEAD}checkpoint: {{interval_s: 0}}\n", "checkpoint.interval_s: must be greater than 0"),
        (f"{HEAD}class: bathc\n", "job.yaml:3: class: must be 'batch', 'interactive' or 'service'"),
        (f"{HEAD}preemptible: yes\n", "preemptible: must be true or false, not the text 'yes'"),
        (f"{HEAD}slice_nodes: 63\n", "slice_nodes: must be less than or equal to 62"),
        (f"{HEAD}num_nodes: 2\n", "num_nodes: means the same as `nodes`"),
        (f"{HEAD}gpus: 4\n", "job.yaml:3: gpus: the size is told by `nodes` too"),
        (f"{HEAD}resources: {{accelerators: GB200}}\n", "tells the size, as `nodes` does"),
        (f"{HEAD}workdir: .\n", "job.yaml:3: workdir: is SkyPilot's and not read here"),
        (f"{HEAD}owner: bob\n", "job.yaml:3: owner: is not given in a file: a job belongs to the"),
        (f"{HEAD}resources: {{cpus: many}}\n", "resources.cpus: must be a number of cores such as"),
        (f"{HEAD}resources: {{cpus: 0}}\n", "resources.cpus: must be a number of cores such as 8"),
        (
            f"{HEAD}resources: {{memory: 32GB}}\n",
            "resources.memory: must be a number of GB such as",
        ),
        (f"{HEAD}resources: {{cpus: 4}}\ncpus: 4\n", "means the same as `cpus`; write one"),
        (
            f"{HEAD}gpus: 0\n",
            "job.yaml:3: gpus: 0 asks for work without GPUs, on one node, and so tells the size by"
            " itself; leave `nodes` out, or `gpus`",
        ),
        (f"{HEAD}gpus: 2\n", "job.yaml:3: gpus: the size is told by `nodes` too"),
        (
            f"{HEAD}resources:\n  cpus: 1e9\n",
            "job.yaml:4: resources.cpus: must be less than or equal to 65536, not the number",
        ),
        (f"{HEAD}cpus: 1e9\n", "job.yaml:3: cpus: must be less than or equal to 65536"),
        ("name: a\ngpus: -1\n", "job.yaml:2: gpus: must be greater than or equal to 0"),
        (f"{HEAD}resources: {{gpu: 4}}\n", "resources.gpu: is not known here"),
        (f"{HEAD}run: a\ncommand: [b]\n", "a job has `command` or `run`, not both"),
        (f"{HEAD}command: python x\n", "command: must be a list of texts"),
        (f"{HEAD}run:\n", "job.yaml:3: run: has no value"),
        (f"{HEAD}envs:\n  KEY:\n", "job.yaml:4: envs.KEY: has no value"),
        (f"{HEAD}envs:\n  1KEY: a\n", "job.yaml:4: envs.1KEY: must be letters"),
        (f"{HEAD}envs: [a]\n", "envs: must be a mapping"),
        (
            "name: a\ngroups:\n- name: g\n  nodes: 0\n",
            "job.yaml:4: groups.0.nodes: must be greater",
        ),
        ("name: a\ngroups:\n- name: g\n  node: 1\n", "groups.0.node: is not known here; did you"),
        ("name: a\ngroups: 3\n", "groups: must be a list, not the number 3"),
    ],
)
def test_an_error_names_line_field_and_what_would_be_right(text: str, says: str) -> None:
    assert says in error(text)


@pytest.mark.parametrize(
    ("accelerators", "says"),
    [
        ("GB200:0", "the count is the number 0"),
        ("GB200:0.5", "the count is the text '0.5'"),
        ("'GB200:'", "the count is the text ''"),
        ("[GB200, H100]", "not a list"),
        ("{GB200: 4, H100: 8}", "not a mapping"),
        ("{GB200: true}", "the count is true"),
        ("H100:8", "a node has 4 GPUs, not 8"),
    ],
)
def test_accelerators_that_mean_nothing_here(accelerators: str, says: str) -> None:
    message = error(f"name: a\nresources:\n  accelerators: {accelerators}\n")
    assert message.startswith("job.yaml:3: resources.accelerators: ")
    assert says in message


def test_part_of_several_nodes_is_no_size() -> None:
    message = error("name: a\nnum_nodes: 2\nresources: {accelerators: 'GB200:2'}\n")
    assert "several nodes are taken whole" in message


BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "job.yaml: is empty"),
        (" \n\n", "job.yaml: is empty"),
        ("# nothing\n", "job.yaml: is empty"),
        ("[1, 2]", "must be a job (names and values), not a list"),
        ("train", "must be a job (names and values), not the text 'train'"),
        (f"{HEAD}---\nname: b\n", "job.yaml:3: a second document begins here"),
        ("name: a\n\tnodes: 1\n", "job.yaml:2: is indented with a tab"),
        (f"{HEAD}nodes: 2\n", "job.yaml:3: nodes: stands here again, first on line 2"),
        (f"{HEAD}run: !!python/name:os.system x\n", "job.yaml:3: run: tags are not read"),
        ("name: &x [*x]\n", "job.yaml:1: name.0: *x stands for nothing above it"),
        (BOMB, "stands for more than 1000000 values"),
        ("[" * 40, "is nested more than 32 deep"),
        ("[" * 60_000, "job.yaml:1: "),
        ("{name: a", "is not YAML"),
        (f"{HEAD}? [a]\n: b\n", "job.yaml:3: a name must be a plain text"),
        (f"{HEAD}checkpoint:\n  <<: {{}}\n", "job.yaml:4: checkpoint: merge keys are not read"),
        (f"{HEAD}run: 'a\0b'\n", "job.yaml: is not YAML"),
        (b"name: a\nrun: \xff\n", "job.yaml:2: byte 13 is not UTF-8"),
        ("name: a\n".encode("utf-16"), "is not UTF-8"),
        ("x" * (1 << 20), f"has 1048576 bytes, at most {MAX_JOB_FILE} are read"),
    ],
)
def test_files_that_are_no_job(text: str | bytes, says: str) -> None:
    assert says in error(text)


def test_a_byte_order_mark_and_anchors_are_read() -> None:
    text = "\ufeffname: a\nnodes: &n 4\nslice_nodes: *n\n".encode()
    assert read_job(text)[1].slice_nodes == 4


@pytest.mark.parametrize("number", ["1e999", "99999999999999999999999"])
def test_numbers_beyond_measure_are_no_numbers(number: str) -> None:
    assert "nodes: must be" in error(f"name: a\nnodes: {number}\n")


def test_json_says_the_same() -> None:
    data = b'{"name": "a", "num_nodes": 2, "resources": {"accelerators": "GB200:4"}, "run": "x"}'
    assert job_from_json(data) == read_job(data)


def test_the_body_of_a_submit_wish_is_a_job() -> None:
    spec = JobSpec(name=JobId("train"), nodes=3)
    assert job_from_json(to_json(Submit(job=JobId("j1"), spec=spec))) == (JobId("j1"), spec)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"{", "is not JSON"),
        (b"[]", "must be a job"),
        (b'{"job": "j", "spec": {"name": "a", "nodes": 0}}', "spec.nodes: must be greater than or"),
        (b'{"job": "j", "spec": {"name": "a", "node": 1}}', "spec.node: is not known here"),
        (b'{"name": "a", "nodes": 1, "qeue": "x"}', "did you mean 'queue'?"),
        (b"\xff", "is not UTF-8"),
    ],
)
def test_json_that_is_no_job(data: bytes, says: str) -> None:
    with pytest.raises(FileError) as caught:
        job_from_json(data)
    assert says in str(caught.value)


def test_an_error_has_its_parts_as_fields() -> None:
    with pytest.raises(FileError) as caught:
        read_job("name: a\nnodes: -1\n", name="job.yaml")
    assert (caught.value.name, caught.value.line, caught.value.field) == ("job.yaml", 2, "nodes")
