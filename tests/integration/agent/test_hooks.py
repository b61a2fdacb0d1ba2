"""Site hooks as real programs."""

import asyncio
from pathlib import Path

from rackwright.agent.hooks import (
    ARGUMENT_BYTES,
    OUTPUT_BYTES,
    HookCall,
    HookKind,
    HookOutcome,
    HookResult,
    run_hook,
)
from tests.integration.agent.helpers import gone, written

CALL = HookCall(job="j", rack="r7", nodes=("n1", "n2"), incarnation=4)


def hook(folder: Path, script: str) -> Path:
    """A program of the site."""
    path = folder / "hook"
    path.write_text(f"#!/bin/sh\ncd {folder}\n{script}\n")
    path.chmod(0o755)
    return path


async def run(path: Path | None, *, limit_s: float = 60.0) -> HookResult:
    """Call it before a start."""
    return await run_hook(HookKind.PROLOG, path, CALL, limit_s=limit_s)


async def test_a_hook_is_told_whom_it_serves(tmp_path: Path) -> None:
    result = await run(hook(tmp_path, 'echo "$RACKWRIGHT_HOOK $@"'))
    assert (result.outcome, result.code, result.passed) == (HookOutcome.OK, 0, True)
    assert result.output == "prolog j r7 n1,n2 4\n"


async def test_no_hook_is_no_failure() -> None:
    assert await run(None) == HookResult(kind=HookKind.PROLOG, outcome=HookOutcome.ABSENT)
    assert (await run(None)).passed


async def test_failure(tmp_path: Path) -> None:
    result = await run(hook(tmp_path, "echo no fabric >&2; exit 3"))
    assert (result.outcome, result.code, result.passed) == (HookOutcome.FAILED, 3, False)
    assert result.output == "no fabric\n"


async def test_a_hook_that_cannot_be_started(tmp_path: Path) -> None:
    missing = await run(tmp_path / "nowhere")
    plain = tmp_path / "plain"
    plain.touch()
    forbidden = await run(plain)
    assert {missing.outcome, forbidden.outcome} == {HookOutcome.NOT_STARTED}
    assert not missing.passed
    assert "nowhere" in missing.output


async def test_time_limit_ends_all_of_its_group(tmp_path: Path) -> None:
    path = hook(tmp_path, "trap '' TERM; sleep 600 & echo $! > child; echo said; wait")
    task = asyncio.create_task(run(path, limit_s=0.5))
    child = int(await written(tmp_path / "child"))
    result = await task
    assert (result.outcome, result.code, result.passed) == (HookOutcome.TIMED_OUT, -9, False)
    assert result.output == "said\n"
    await gone(child)


async def test_a_child_left_behind_does_not_hold_the_hook(tmp_path: Path) -> None:
    result = await run(hook(tmp_path, "sleep 600 & echo $! > child"))
    assert result.outcome is HookOutcome.OK
    await gone(int(await written(tmp_path / "child")))


async def test_of_much_output_the_end_is_kept(tmp_path: Path) -> None:
    result = await run(hook(tmp_path, "head -c 1000000 /dev/zero | tr '\\0' x; echo end"))
    assert len(result.output) == OUTPUT_BYTES
    assert result.output.endswith("xend\n")


async def test_cancelled_it_is_killed(tmp_path: Path) -> None:
    task = asyncio.create_task(run(hook(tmp_path, "echo $$ > child; exec sleep 600")))
    child = int(await written(tmp_path / "child"))
    task.cancel()
    await asyncio.wait({task})
    await gone(child)
    assert task.cancelled()


def test_a_list_of_nodes_too_long_for_linux_is_cut_at_a_comma() -> None:
    call = HookCall(
        job="j", rack="r", nodes=tuple(f"node-{n}" for n in range(25_000)), incarnation=1
    )
    _, _, nodes, _ = call.arguments()
    assert len(nodes) <= ARGUMENT_BYTES
    assert nodes.split(",") == list(call.nodes[: nodes.count(",") + 1])
