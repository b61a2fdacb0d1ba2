"""Kernel calls that Python 3.11 does not offer, through ctypes. Each raises OSError when refused.

Sources: prctl(2), renameat2(2), timerfd_create(2), signalfd(2), inotify(7). Numbers are those of
Linux on x86-64 and arm64.
"""

import ctypes
import os
import sys

SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGTERM, SIGCHLD, SIGXFSZ = 1, 2, 9, 13, 15, 17, 25

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLOCK_BOOTTIME = 7
_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_FLAGS = os.O_CLOEXEC | os.O_NONBLOCK  # TFD_*, SFD_* and IN_* are these same bits
_SIGSET_BYTES = 128
_SIGINFO_BYTES = 128
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_SECOND = 1_000_000_000

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def become_subreaper() -> None:
    """Let orphans among our descendants become our children instead of init's."""
    _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def die_with_parent(signal: int) -> None:
    """Ask for a signal when the thread that forked us ends."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0))


def exchange(one: str, other: str) -> None:
    """Let two files change names, at once and without any room: renameat2(2)."""
    paths = os.fsencode(one), os.fsencode(other)
    _checked(_libc.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE))


def timer() -> int:
    """A timer descriptor on CLOCK_BOOTTIME, which goes on while the host sleeps."""
    return _checked(_libc.timerfd_create(_CLOCK_BOOTTIME, _FLAGS))


def set_timer(fd: int, at_ns: int) -> None:
    """Make the timer readable at a moment of CLOCK_BOOTTIME; 0 disarms it."""
    value = (ctypes.c_long * 4)(0, 0, at_ns // _SECOND, at_ns % _SECOND)
    _checked(_libc.timerfd_settime(fd, _ABSOLUTE, value, None))


def _sigset(signals: tuple[int, ...]) -> ctypes.Array[ctypes.c_char]:
    mask = ctypes.create_string_buffer(_SIGSET_BYTES)
    _checked(_libc.sigemptyset(mask))
    for signal in signals:
        _checked(_libc.sigaddset(mask, signal))
    return mask


def signal_reader(signals: tuple[int, ...]) -> int:
    """A descriptor that delivers these signals, which are blocked from now on."""
    mask = _sigset(signals)
    _checked(_libc.sigprocmask(0, mask, None))
    return _checked(_libc.signalfd(-1, mask, _FLAGS))


def read_signals(fd: int) -> list[int]:
    """The numbers of the signals waiting at a descriptor of `signal_reader`."""
    try:
        data = os.read(fd, 16 * _SIGINFO_BYTES)
    except BlockingIOError:
        return []
    starts = range(0, len(data), _SIGINFO_BYTES)
    return [int.from_bytes(data[at : at + 4], sys.byteorder) for at in starts]


def plain_signals() -> None:
    """Give a child the signal state a program expects: nothing blocked, Python's ignores undone."""
    _checked(_libc.sigprocmask(2, _sigset(()), None))
    for signal in (SIGPIPE, SIGXFSZ):
        _libc.signal(signal, None)


def inotify() -> int:
    """A new inotify descriptor, non-blocking."""
    return _checked(_libc.inotify_init1(_FLAGS))


def inotify_add(fd: int, path: str, mask: int) -> int:
    """Watch a path; returns the number by which its events are told."""
    return _checked(_libc.inotify_add_watch(fd, os.fsencode(path), mask))


def inotify_remove(fd: int, watch: int) -> None:
    """Stop watching; a watch that the kernel has already dropped is no error."""
    _libc.inotify_rm_watch(fd, watch)
