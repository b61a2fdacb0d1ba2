"""`python -m tests.fuzz TARGET [--seconds N]`: fuzz one reader by the coverage of its code.

A crash, a hang of over thirty seconds, or more than a gigabyte of memory ends it with the input
that did it, in `build/fuzz/`; give that file as `--again` to see it happen.
"""

import argparse
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

import atheris

CORPUS = Path("build/fuzz")
INSTRUMENTED = ["rackwright.wire", "rackwright.host.files", "rackwright.agent.xid"]
HANG_S = 30
MEMORY_MB = 1024


def main() -> None:
    """Fuzz until the time is over; ends the process."""
    with atheris.instrument_imports(include=INSTRUMENTED):
        from tests.fuzz.targets import TARGETS, seeds, took
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="?", choices=sorted(TARGETS))
    parser.add_argument("--list", action="store_true", help="name the targets")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=-1, help="-1: as many as the time allows")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="where finds are kept")
    parser.add_argument("--again", type=Path, help="a file that made it fail")
    told = parser.parse_args()
    if told.list or told.target is None:
        print(*TARGETS, sep="\n")
        return
    if told.again is not None:
        print("read" if took(told.target, told.again.read_bytes()) else "refused")
        return
    corpus = told.corpus / told.target
    corpus.mkdir(parents=True, exist_ok=True)
    first = Path(tempfile.mkdtemp(prefix="rackwright-fuzz-"))
    for place, seed in enumerate(seeds(told.target)):
        (first / f"seed-{place}").write_bytes(seed)
    try:
        atheris.Setup(
            [
                sys.argv[0],
                str(corpus),
                str(first),
                f"-max_total_time={told.seconds}",
                f"-runs={told.runs}",
                f"-seed={told.seed}",
                f"-timeout={HANG_S}",
                f"-rss_limit_mb={MEMORY_MB}",
                f"-artifact_prefix={told.corpus}/{told.target}-",
                "-max_len=16384",
                "-verbosity=0",
                "-print_final_stats=1",
            ],
            partial(took, told.target),
        )
        atheris.Fuzz()
    finally:
        shutil.rmtree(first)


if __name__ == "__main__":
    main()
