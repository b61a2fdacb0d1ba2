"""The pages for users and operators say what the code has: settings, fields, flags, metrics."""

import re
from dataclasses import MISSING, fields
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from rackwright.agent import config as agent
from rackwright.agent.environment import INHERITED, Place, build
from rackwright.agent.membership import Member
from rackwright.agent.records import DIRECTORY_VARIABLE, WorkerFiles
from rackwright.core.fleet import Fleet
from rackwright.core.policy.admission import Admitted, admit
from rackwright.core.policy.prices import weight
from rackwright.core.policy.xid_tables import XIDS
from rackwright.host.config import options
from rackwright.host.files.jobfile import read_job
from rackwright.host.metrics import Metrics
from rackwright.wire import knobs
from rackwright.wire.jobs import Checkpoint, Group, JobSpec, Parallel
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Cause
from tests.support.fleets import cell, hardware, rack_spec

ROOT = Path(__file__).parents[2]
PLAIN = {True: "yes", False: "no", (): "none", None: "none", "": "empty"}
# Defaults that a sentence says better than their value does.
TOLD = {
    "name": "required",
    "job_class": "batch",
    "slice_nodes": "the queue's or cell's",
    "cpus": "its GPUs' share",
    "memory_gb": "its GPUs' share",
    "time_limit_s": "by class",
    "checkpoint": "below",
    "parallel": "1 each",
    "labels": "none",
    "env": "none",
    "same": "gpu_model, driver",
}
TOLD_OF_GROUP = {
    "name": "required",
    "nodes": "required",
    "min_replicas": "all",
    "slice_nodes": "the job's",
    "topology": "the job's",
}
WRITTEN = {"job_class": "`class` (`job_class`)", "env": "`env` (`envs`)"}


def page(name: str) -> str:
    """A page for people."""
    return (ROOT / name).read_text(encoding="utf-8")


def rows(text: str) -> dict[str, list[str]]:
    """Cells of the rows of all tables of a page, by their first cell."""
    found = {}
    for line in text.splitlines():
        if line.startswith("|"):
            first, *rest = (part.strip() for part in line.strip("|").split("|"))
            found[first] = rest
    return found


def table(text: str, head: str) -> dict[str, list[str]]:
    """The rows of all tables whose first column has this head."""
    blocks = [block for block in text.split("\n\n") if block.startswith(f"| {head} |")]
    assert blocks, head
    return {key: row for block in blocks for key, row in list(rows(block).items())[2:]}


# Settings


def test_tables_of_settings_are_current_and_whole() -> None:
    text = page("docs/policies.md")
    assert knobs.filled(text) == text, "run `make schemas` and commit the difference"
    assert sorted(knobs.named(text)) == sorted(field.name for field in fields(Policy))


def test_tables_are_written_between_their_marks(tmp_path: Path) -> None:
    made = tmp_path / "page.md"
    made.write_text("a\n<!-- knobs: lend_spares, breaker_share -->\nold\n<!-- /knobs -->\nb\n")
    assert knobs.main(made) == 0
    assert made.read_text().splitlines()[3:6] == [
        "|---|---|---|---|---|",
        "| `lend_spares` | yes |  | yes, no | 2 % of the cell more work, simulated |",
        "| `breaker_share` | 0.002 | of nodes | 0 to 1 | in the breaker window |",
    ]
    assert made.read_text().startswith("a\n")
    assert made.read_text().endswith("-->\nb\n")


def test_every_cause_is_explained() -> None:
    assert list(table(page("docs/policies.md"), "cause")) == [f"`{cause}`" for cause in Cause]


def test_xids_are_those_of_the_tables() -> None:
    told = table(page("docs/policies.md"), "class")
    for name, numbers in XIDS.items():
        found: set[int] = set()
        for low, high in re.findall(r"(\d+)(?:-(\d+))?", told[str(name)][0]):
            found.update(range(int(low), int(high or low) + 1))
        assert found == set(numbers), name


def test_prices_of_the_example() -> None:
    """512 GPUs, priority 50, a checkpoint every 30 minutes."""
    policy, checkpoint = Policy(), Checkpoint(interval_s=1800.0)
    lost = 1800.0 / 2
    seconds = {
        "restart": policy.restart_in_place_s,
        "spare": policy.swap_cost_s,
        "free rack": policy.move_cost_s,
        "requeue": policy.defrag_wait0_s + checkpoint.restart_s + lost,
    }
    prices = {name: 512 * s / 3600 * weight(50) for name, s in seconds.items()}
    told = ", ".join(
        f"{name} {price:.0f}" if price > 100 else f"{name} {price:.1f}"
        for name, price in prices.items()
    )
    assert told in " ".join(page("docs/policies.md").split())


# Jobs


def _default(field: Any) -> str:
    if field.default is MISSING:
        return "required" if field.default_factory is MISSING else "none"
    value = field.default
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, bool) or value in (None, (), ""):
        return PLAIN[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize(
    ("kind", "head", "told"),
    [
        (JobSpec, "field", TOLD),
        (Group, "of one of `groups`", TOLD_OF_GROUP),
        (Checkpoint, "of `checkpoint`", {}),
        (Parallel, "of `parallel`", {}),
    ],
)
def test_every_field_is_told_with_its_default(kind: Any, head: str, told: dict[str, str]) -> None:
    found = table(page("docs/jobs.md"), head)
    expected = {
        WRITTEN.get(field.name, f"`{field.name}`"): told.get(field.name, _default(field))
        for field in fields(kind)
    }
    more = {"`id`": "the name"} if kind is JobSpec else {}
    assert {name: row[0] for name, row in found.items()} == expected | more


def test_the_environment_is_told() -> None:
    place = Place(
        cell="main",
        job="train",
        rank=0,
        node="n0",
        rack="r0",
        slice=0,
        slice_rank=0,
        group="train",
        replica=0,
        membership=1,
        incarnation=1,
        gpus=(0,),
        cpus=36.0,
        memory_gb=240.0,
        whole_node=False,
        members=(
            Member(
                rank=0,
                node="n0",
                rack="r0",
                slice=0,
                worker="train/0/1",
                incarnation=1,
                address="n0",
            ),
        ),
        master_port=20_000,
    )
    made = build(place, WorkerFiles(directory=Path("worker")), {}, inherited=())
    found = table(page("docs/jobs.md"), "variable")
    assert set(found) == {f"`{name}`" for name in (*made, DIRECTORY_VARIABLE)}


def _cell() -> Fleet:
    made = cell(0)
    made.define(*(rack_spec(f"r{number}", 18) for number in range(8)), join=False)
    for number in range(8):
        for place in range(18):
            node = f"r{number}-n{place:02d}"
            made.join(node, hardware(node, model="GB200"))
    return made.fleet


EXAMPLES = [
    (name, example)
    for name in ("README.md", "docs/jobs.md")
    for example in re.findall(r"```yaml\n(.*?)```", page(name), re.DOTALL)
]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_examples_of_jobs_are_admitted(name: str, example: str) -> None:
    _, spec = read_job(example, name=name)
    assert isinstance(admit(_cell(), spec), Admitted)


# Operations


def test_every_setting_of_a_service_is_told() -> None:
    text = page("docs/operations.md")
    told = table(text, "flag") | table(text, "flag of the agent")
    known = [*options(), *agent.options()]
    assert set(told) == {f"`{option.opts[0]}`" for option in known}
    for option in known:
        assert told[f"`{option.opts[0]}`"][0] == f"`{option.envvar}`"
    for option in options():
        value = option.default
        plain = value if isinstance(value, str | int) else "none"
        assert told[f"`{option.opts[0]}`"][1] == str(plain)


def test_metrics_exist() -> None:
    text = page("docs/operations.md").split("## Metrics and alerts")[1].split("\n## ")[0]
    told = set(re.findall(r"[`(](rackwright_\w+)[`)]", text))  # in alert rules, in brackets
    told = {name for name in told if not name.startswith("rackwright_main_")}
    served = set(re.findall(r"^# TYPE (\w+)", Metrics().page().decode(), re.MULTILINE))
    gateway = ROOT / "services" / "rackwright" / "gateway"
    text = "".join((gateway / f"{name}.py").read_text("utf-8") for name in ("families", "measured"))
    short = set(re.findall(r'"(?:rackwright_)?([a-z0-9_]+)"', text))
    served |= {f"rackwright_{name}{end}" for name in short for end in ("", "_total")}
    assert told
    assert told - served == set()


def test_log_events_that_people_are_sent_to_exist() -> None:
    text = page("docs/operations.md") + page("docs/policies.md")
    events = {"fold.stopped", "commit.void", "clock.corrected", "copy.ordinal_taken"}
    events |= {"recovery.breaker_open", "node.unproven", "repair.overdue", "snapshot.diverged"}
    events |= {"symptoms.unexplained", "monitor.blind", "ledger.trim_denied", "defrag.judged"}
    sources = "".join(
        path.read_text(encoding="utf-8")
        for top in ("libs", "services")
        for path in sorted((ROOT / top).rglob("*.py"))
    )
    assert {event for event in events if f"`{event}`" not in text} == set()
    assert {event for event in events if f'"{event}"' not in sources} == set()


def test_inherited_variables_are_named() -> None:
    text = page("docs/jobs.md")
    assert [name for name in INHERITED if f"`{name}`" not in text] == []
