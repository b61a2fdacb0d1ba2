"""What tests of live cells know of the world beside the ledger: files, processes, their workers."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from rackwright.agent.records import DIRECTORY_VARIABLE

WITHIN_S = 60.0  # what has not happened by then does not happen

# Locks its rank and its GPUs for as long as any process of it lives, notes its start and its
# environment, saves when told to, and ends when a word comes through its FIFO.
WORKER = r"""
me="$LIVE_HOME/$RACKWRIGHT_JOB.$RACKWRIGHT_RANK"
exec 9>"$me.lock"
flock -n 9 || echo "rank $RACKWRIGHT_WORKER" >> "$LIVE_HOME/twice"
for gpu in ${RACKWRIGHT_GPUS//,/ }; do
  exec {lock}>"$LIVE_HOME/gpu.$RACKWRIGHT_NODE.$gpu"
  flock -n "$lock" || echo "gpu $gpu of $RACKWRIGHT_NODE: $RACKWRIGHT_WORKER" >> "$LIVE_HOME/twice"
done
n=0; [ -f "$me.saved" ] && n=$(< "$me.saved")
save() {
  echo "$n" > "$me.new" && mv "$me.new" "$me.saved" && : > "$RACKWRIGHT_CHECKPOINT_FILE"
}
trap save USR1
trap 'echo "told of membership" >> "$me.told"' USR2
env -0 > "$me.$RACKWRIGHT_INCARNATION.env"
mkfifo "$me.$RACKWRIGHT_INCARNATION.words"
exec 8<>"$me.$RACKWRIGHT_INCARNATION.words"
echo "$RACKWRIGHT_INCARNATION $n" >> "$me.starts"
echo "rank $RACKWRIGHT_RANK of $RACKWRIGHT_JOB is here"
[ -n "$LIVE_EXIT" ] && exit "$LIVE_EXIT"
line=
while :; do
  IFS= read -r -t 0.25 -u 8 some; whole=$?
  n=$((n + 1)) line="$line$some" some=
  [ "$whole" = 0 ] || continue  # the time was up, perhaps in the middle of a word
  read -r word code <<< "$line"; line=
  [ "$word" = exit ] && exit "$code"
done
"""


async def appears(there: Callable[[], bool], within_s: float = WITHIN_S) -> None:
    """Wait for something that only the file system knows: it is looked at often."""
    async with asyncio.timeout(within_s):
        while not there():  # noqa: ASYNC110 - a file that a worker writes has no event of ours
            await asyncio.sleep(0.02)


def processes_below(directory: Path) -> dict[int, str]:
    """Living processes that belong to a worker, or work for something, below this directory."""
    mark = f"{DIRECTORY_VARIABLE}={directory}".encode()
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            marked = mark in (entry / "environ").read_bytes()
        except OSError:  # it has ended meanwhile, or is another user's
            continue
        if words and (marked or bytes(directory) in words):
            found[int(entry.name)] = words.replace(b"\0", b" ").decode(errors="replace")
    return found


async def gone(directory: Path, within_s: float = 20.0) -> None:
    """Wait until no process works below this directory any more. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        for pid in processes_below(directory):
            await process_ends(pid)


async def process_ends(pid: int) -> None:
    """Wait until a process that need not be our child has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(fd, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def kill_below(directory: Path, besides: Iterable[int] = ()) -> dict[int, str]:
    """Kill what is left below a directory of ours; what that was."""
    left = {
        pid: words for pid, words in processes_below(directory).items() if pid not in set(besides)
    }
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return left
