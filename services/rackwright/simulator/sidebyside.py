"""Runs of several policies side by side, each in a process of its own.

They share nothing but the word to stop: what a run finds does not depend on which others there are.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from ctypes import Array, c_double
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

from rackwright.simulator.cell import SimCell
from rackwright.simulator.generator import Source, generated
from rackwright.simulator.mixture import Habits, jobs
from rackwright.simulator.policies import Setup
from rackwright.simulator.readers import Trace
from rackwright.simulator.recording import Recorder
from rackwright.simulator.running import Outcome, Plan, run
from rackwright.simulator.stopping import Stop
from rackwright.simulator.workload import SimJob

NOT_BEGUN = -1.0
LOOK_S = 0.2  # how often it is looked how far the others are

Shares: TypeAlias = Array[c_double]
Share = Callable[[int, float], None]
"""Told of a task, by its place in the list, how much of it is done: 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs of a trace, or drawn of `mixture` (sources with their shares) for `load` of the cell."""

    trace: Path | None = None
    sort: bool = False
    mixture: tuple[tuple[Source, float], ...] = ()
    load: float = 0.0

    def jobs(self, plan: Plan, stop: Stop) -> tuple[Iterator[SimJob], Trace | None]:
        """The same jobs each time it is asked, and the trace that they are read from; `stop` ends
        the drawing of them.

        Raises BadTrace when they are read, OSError.
        """
        gpus = max(rack.gpus_per_node for rack in plan.racks)
        habits = Habits(seed=plan.seed, gpus_per_node=gpus)
        if self.trace is not None:
            trace = Trace(self.trace)
            return jobs(trace.rows(sort=self.sort), habits), trace
        installed = sum(len(rack.nodes) * rack.gpus_per_node for rack in plan.racks)
        rows = generated(
            self.mixture,
            load_gpus=self.load * installed,
            span_s=plan.span_s or 0.0,
            seed=plan.seed,
            stop=stop,
        )
        return jobs(rows, habits), None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One policy to be run; its ledger is kept in `record`."""

    setup: Setup
    plan: Plan
    workload: Workload
    record: Path | None = None

    def run(self, stop: Stop, told: Callable[[float], None]) -> Outcome | None:
        """Run it here; None if it was told to stop before it began."""
        told(0.0)
        work, trace = self.workload.jobs(self.plan, stop)
        if stop.asked:
            return None
        recorders = [] if self.record is None else [Recorder(directory=self.record)]

        def share(cell: SimCell, at: float) -> None:
            if self.plan.span_s is not None:
                told(at / self.plan.span_s)
            elif trace is not None:
                told(trace.share * cell.done / max(1, cell.submitted))

        watchers = [one.watch for one in recorders]
        outcome = run(self.setup, work, self.plan, told=share, recorders=watchers, stop=stop)
        for recorder in recorders:
            recorder.flush()
        return outcome


def run_all(
    tasks: Sequence[Task], *, processes: int, stop: Stop, told: Share
) -> list[Outcome | None]:
    """Run these; None for what was not begun when the word to stop came.

    Raises what a run raises, BrokenProcessPool when a process was killed.
    """
    if min(processes, len(tasks)) > 1:
        return _in_processes(tasks, processes, stop, told)
    return [task.run(stop, partial(told, place)) for place, task in enumerate(tasks)]


def _in_processes(
    tasks: Sequence[Task], processes: int, stop: Stop, told: Share
) -> list[Outcome | None]:
    context = get_context("spawn")
    ear, mouth = context.Pipe(duplex=False)  # it is said by closing it: nobody is waited for
    # Each place has one writer; a lock would be lost with who is killed while holding it.
    shares = context.RawArray(c_double, [NOT_BEGUN] * len(tasks))
    outcomes: list[Outcome | None] = [None] * len(tasks)
    with _passed_on(stop, mouth):
        pool = ProcessPoolExecutor(
            min(processes, len(tasks)),
            mp_context=context,
            initializer=_Here.begin,
            initargs=(ear, shares),
        )
        try:
            with _deaf_from_birth():
                going = {pool.submit(_run_one, at, task): at for at, task in enumerate(tasks)}
            waiting: set[Future[Outcome | None]] = set(going)
            while waiting:
                done, waiting = wait(waiting, timeout=LOOK_S, return_when=FIRST_COMPLETED)
                for place in range(len(tasks)):
                    if shares[place] > NOT_BEGUN:
                        told(place, shares[place])
                for one in done:
                    outcomes[going[one]] = one.result()
        except KeyboardInterrupt:
            for child in active_children():
                child.kill()  # it was said twice: nobody waits for a report
            raise
        finally:
            mouth.close()  # whatever ended this ends the others
            pool.shutdown(cancel_futures=True)
            ear.close()
    return outcomes


@contextmanager
def _passed_on(stop: Stop, mouth: Connection) -> Iterator[None]:
    stop.heard.append(mouth.close)
    if stop.asked:
        mouth.close()
    try:
        yield
    finally:
        stop.heard.remove(mouth.close)


@contextmanager
def _deaf_from_birth() -> Iterator[None]:
    """Processes that begin here hear nothing of a Ctrl-C that comes before they can ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Here:
    """What a process that runs tasks has of the one that began it."""

    ear: Connection
    shares: Shares

    @classmethod
    def begin(cls, ear: Connection, shares: Shares) -> None:
        """A terminal tells everybody of Ctrl-C, and service managers of SIGTERM: here only the word
        of the one that began this counts."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        cls.ear, cls.shares = ear, shares
        threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # nobody is left who could be told anything


def cores() -> int:
    """How many this process may use."""
    found = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(found(0)) if found is not None else os.cpu_count() or 1


def _run_one(place: int, task: Task) -> Outcome | None:
    stop = Stop()

    def listen() -> None:
        _Here.ear.poll(None)  # nothing ever comes but the end of it
        stop.ask()

    def told(share: float) -> None:
        _Here.shares[place] = share

    threading.Thread(target=listen, daemon=True).start()
    return task.run(stop, told)
