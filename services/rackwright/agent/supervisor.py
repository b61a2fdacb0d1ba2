"""One small process per worker: owns its processes, runs its fence timer, outlives the agent.

It is told `go`, `stop SECONDS` and `signal NUMBER` on its standard input, a FIFO in the worker's
directory. Before an ended state is written, everything the worker started is gone: as a
subreaper the supervisor is the last parent of every descendant, so "no child left" proves it. Only
a process that sits in the kernel with SIGKILL pending may remain; the record then says that it is
not reaped, and a second record follows when it is.
What a `kill -9` of the supervisor itself leaves: the leader dies with it (PR_SET_PDEATHSIG); other
processes of the worker live until the agent kills them, at once or when it starts again.
"""

import fcntl
import os
import select
import time

from rackwright.agent import lease, linux, processes
from rackwright.agent.output import Output

SECOND_NS = 1_000_000_000
KILL_AGAIN_NS = 50_000_000  # while something is left after SIGKILL
UNREAPED_AFTER_NS = 250_000_000  # what is left then sits in the kernel: it has ended all the same
CANNOT_RUN, NOT_FOUND = 126, 127  # exit codes as a shell gives them


def read_words(path: str) -> list[str]:
    """Strings of a NUL-separated file, each ended by a NUL."""
    with open(path, "rb") as file:
        return os.fsdecode(file.read()).split("\0")[:-1]


def read_pairs(path: str) -> dict[str, str]:
    """`key=value` strings of a NUL-separated file."""
    pairs = (word.partition("=") for word in read_words(path))
    return {key: value for key, _, value in pairs}


class Supervisor:
    """Takes one worker from prepared to its end. `directory` holds `spec`, `command` and `env`."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.claim = os.open(directory + "/spec", os.O_RDONLY)
        fcntl.flock(self.claim, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one supervisor per worker
        self.spec = read_pairs(directory + "/spec")
        self.gpus = [gpu for gpu in self.spec["gpus"].split(",") if gpu]
        self.boot = processes.boot_id()
        self.pid = os.getpid()
        self.lease_ns = lease.read(self.spec["lease"])
        self.leader = 0
        self.leader_started = 0
        self.group = 0  # the leader's group while its number cannot be reused, else 0
        self.code: int | None = None
        self.ending = ""  # the state it ends in, once that is settled
        self.cause = ""
        self.kill_at = 0  # end of the grace
        self.killed_at = 0
        self.told_unreaped = False
        self.finished = False
        self.heard = b""
        self.gpu_locks: list[int] = []
        self.timer = linux.timer()
        self.output = Output(
            directory, log_bytes=int(self.spec["log_bytes"]), events=self.spec["events"]
        )

    def run(self) -> None:
        """Live until everything of the worker is gone."""
        linux.become_subreaper()
        signals = linux.signal_reader((linux.SIGCHLD, linux.SIGTERM, linux.SIGINT, linux.SIGHUP))
        poll = select.poll()
        for fd in (0, signals, self.timer, self.output.fd):
            poll.register(fd, select.POLLIN)
        self.output.write_record(self.record("prepared", reaped=True))
        while not self.finished:
            linux.set_timer(self.timer, self.next_deadline())
            for fd, _ in poll.poll():
                if fd == self.output.fd:
                    if not self.output.drain():
                        poll.unregister(fd)
                elif fd == 0:
                    self.listen()
                elif fd == signals:
                    self.on_signals(linux.read_signals(signals))
            self.on_time(lease.now_ns())

    def next_deadline(self) -> int:
        """When to look again, in ns of CLOCK_BOOTTIME; 0: only when something happens."""
        if self.killed_at:
            return lease.now_ns() + KILL_AGAIN_NS
        fence = max(1, self.lease_ns) if self.is_fenced() else 0
        return min((at for at in (fence, self.kill_at) if at), default=0)

    def is_fenced(self) -> bool:
        """Whether the lease counts: before the start always, later unless the job may run on."""
        return not self.leader or self.spec["on_lost_lease"] == "stop"

    def has_lease(self, now: int) -> bool:
        """Whether the lease runs; it is read anew only when the deadline known has passed."""
        if now >= self.lease_ns:
            self.lease_ns = lease.read(self.spec["lease"])
        return now < self.lease_ns

    def on_time(self, now: int) -> None:
        """Act on deadlines that have passed."""
        if self.finished:
            return
        if self.killed_at:
            self.kill()
        elif self.is_fenced() and not self.has_lease(now):
            self.end("fenced", "lease ended", 0)
        elif self.kill_at and now >= self.kill_at:
            self.kill()

    def listen(self) -> None:
        """Obey what the agent wrote."""
        self.heard += os.read(0, 4096)
        *lines, self.heard = self.heard.split(b"\n")
        for line in lines:
            match line.decode("ascii").split():
                case ["go"] if not self.leader and not self.ending:
                    self.start()
                case ["stop", seconds] if not self.finished:
                    self.end("stopped", "told to stop", int(float(seconds) * SECOND_NS))
                case ["signal", number] if self.group:
                    os.kill(self.leader, int(number))

    def on_signals(self, numbers: list[int]) -> None:
        """A child ended, or somebody asks the supervisor itself to end."""
        if linux.SIGTERM in numbers:
            grace_ns = int(float(self.spec["grace_s"]) * SECOND_NS)
            self.end("stopped", "supervisor told to end", grace_ns)
        if linux.SIGCHLD in numbers:
            self.reap()

    def start(self) -> None:
        """Start the command, if the lease runs and the GPUs are free."""
        if not self.has_lease(lease.now_ns()):
            self.end("fenced", "lease ended", 0)
        elif not self.lock_gpus():
            self.end("exited", "gpus busy", 0)
        else:
            ready, grouped = os.pipe()
            self.leader = os.fork()
            if not self.leader:
                self.become_worker(grouped)
            os.close(grouped)
            os.read(ready, 1)  # before that, its group could not be killed
            os.close(ready)
            self.leader_started = processes.start_time(self.leader)
            self.group = self.leader
            self.output.start()
            self.output.record(self.record("running", reaped=False))

    def lock_gpus(self) -> bool:
        """Lock each GPU. The worker inherits the locks: they last as long as its processes."""
        for gpu in self.gpus:
            path = f"{self.spec['gpu_locks']}/gpu{gpu}.lock"
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            self.gpu_locks.append(fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.unlock_gpus()
                return False
        return True

    def unlock_gpus(self) -> None:
        """Let go of the GPUs; what still runs on them goes on holding them."""
        for fd in self.gpu_locks:
            os.close(fd)
        self.gpu_locks = []

    def become_worker(self, grouped: int) -> None:
        """In the child: turn into the command, or end as a shell would.

        A word to `grouped` says that it has its own group and dies with the supervisor.
        """
        code = CANNOT_RUN
        try:
            os.setsid()
            linux.die_with_parent(linux.SIGKILL)
            if os.getppid() != self.pid:  # the supervisor died before it could be noticed
                os._exit(CANNOT_RUN)
            os.write(grouped, b"+")
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(self.output.worker_end, 1)
            os.dup2(self.output.worker_end, 2)
            for fd in self.gpu_locks:
                os.set_inheritable(fd, True)
            linux.plain_signals()
            self.join_cgroup()
            command = read_words(self.directory + "/command")
            os.chdir(self.spec["cwd"] or "/")
            os.execvpe(command[0], command, read_pairs(self.directory + "/env"))
        except FileNotFoundError as error:
            os.write(2, f"cannot start: {error}\n".encode())
            code = NOT_FOUND
        except OSError as error:
            os.write(2, f"cannot start: {error}\n".encode())
        finally:
            os._exit(code)

    def join_cgroup(self) -> None:
        """In the child: enter the worker's own cgroup, where the agent found one to be possible.

        Its limits are files there only if the controllers are on; the agent has said if not.
        """
        if self.spec["cgroup"]:
            os.makedirs(self.spec["cgroup"], exist_ok=True)
            for limit in ("cpu.max", "memory.max"):
                path = f"{self.spec['cgroup']}/{limit}"
                if self.spec.get(limit) and os.path.exists(path):
                    with open(path, "w", encoding="ascii") as file:
                        file.write(self.spec[limit])
            with open(self.spec["cgroup"] + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write("0")

    def end(self, state: str, cause: str, grace_ns: int) -> None:
        """Settle how the worker ends (the first cause counts) and end it within the grace."""
        if not self.ending:
            self.ending, self.cause = state, cause
        at = lease.now_ns() + grace_ns
        if not self.leader:
            self.finish()
        elif grace_ns <= 0 or self.killed_at:
            self.kill()
        elif not self.kill_at or at < self.kill_at:
            self.kill_at = at
            if self.group:
                os.killpg(self.group, linux.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to all that the worker started; again until none is left."""
        now = lease.now_ns()
        self.killed_at = self.killed_at or now
        if self.spec["cgroup"]:
            try:
                with open(self.spec["cgroup"] + "/cgroup.kill", "w", encoding="ascii") as file:
                    file.write("1")
            except OSError as error:  # the walk below does without
                os.write(2, f"cgroup.kill: {error}\n".encode())
        if self.group:
            os.killpg(self.group, linux.SIGKILL)
        left = processes.descendants(self.pid)
        for pid in left:
            try:
                os.kill(pid, linux.SIGKILL)
            except (ProcessLookupError, PermissionError):  # gone, or set-uid: not ended until gone
                continue
        self.reap()
        late = now - self.killed_at >= UNREAPED_AFTER_NS
        if late and not (self.finished or self.told_unreaped):
            self.told_unreaped = all(map(processes.is_doomed, left))
            if self.told_unreaped:
                self.output.record(self.record(self.ending, reaped=False))

    def reap(self) -> None:
        """Collect the dead. The leader's zombie is kept until the kill: it keeps the group's id."""
        if self.finished:
            return
        if self.leader and self.code is None:
            self.look_at_leader()
        if self.killed_at:
            self.collect_all()
            return
        others = [pid for pid in processes.descendants(self.pid) if pid != self.leader]
        for pid in others:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # a grandchild: its own parent collects it
                continue
        if self.kill_at and self.code is not None and not any(map(processes.start_time, others)):
            self.kill()  # all went within the grace: nothing to wait for

    def look_at_leader(self) -> None:
        """Note how the leader ended; without a stop, the rest of its worker ends with it."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        done = os.waitid(os.P_PID, self.leader, flags)
        if done is None:
            return
        self.code = done.si_status if done.si_code == os.CLD_EXITED else -done.si_status
        if not self.ending:
            self.end("exited", "", 0)

    def collect_all(self) -> None:
        """Collect every child after the kill; none left means that nothing of the worker is."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                if pid == self.leader:
                    self.group = 0
                    self.code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            self.finish()

    def finish(self) -> None:
        """Write the last record, behind all output, and be done."""
        if self.finished:
            return
        self.finished = True
        self.unlock_gpus()
        ended = self.record(self.ending, reaped=True)
        if not self.leader:
            self.output.write_record(ended)
            return
        self.output.drain()
        self.output.finish(ended)
        if self.spec["cgroup"]:
            try:
                os.rmdir(self.spec["cgroup"])
            except OSError as error:
                os.write(2, f"cgroup not removed: {error}\n".encode())

    def record(self, state: str, *, reaped: bool) -> bytes:
        """The worker's state as one line of JSON; written by hand, as json is slow to import."""
        code = "null" if self.code is None else str(self.code)
        return (
            f'{{"worker_id":"{self.spec["worker"]}","state":"{state}","cause":"{self.cause}",'
            f'"supervisor":{self.pid},"supervisor_started":{processes.start_time(self.pid)},'
            f'"pid":{self.leader},"started":{self.leader_started},"boot_id":"{self.boot}",'
            f'"code":{code},"reaped":{"true" if reaped else "false"},'
            f'"gpus":[{",".join(self.gpus)}],"at":{time.time():.6f}}}\n'
        ).encode("ascii")
