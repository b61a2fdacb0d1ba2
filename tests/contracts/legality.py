"""Fleets and entries asked about, and what each fold version says of them: frozen with it.

`frozen/cases.jsonl.gz` has a line for each fleet (as a snapshot, without what has its default) and
then one for each case: which fleet, and an entry. `frozen/verdicts-N.json` says for each case what
fold version N does: the sentence by which the entry is illegal, or a hash of the fleet after it.

A version that a release has is never written again. `python -m tests.contracts.legality` writes the
verdicts of the newest version, which is the one in work, and refuses while older ones are wrong.
"""

import gzip
import json
import sys
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply
from rackwright.core.jobs import TRANSITIONS
from rackwright.core.legality import illegal
from rackwright.core.snapshot import FleetRecord, load, record
from rackwright.wire.codec import adapter
from rackwright.wire.entries import ENTRIES
from rackwright.wire.message import Entry
from rackwright.wire.versions import FOLD_VERSION

FROZEN = Path(__file__).parent / "frozen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """May this entry follow this fleet?"""

    fleet: Fleet
    entry: Entry


@cache
def cases() -> tuple[Case, ...]:
    """All that are asked."""
    lines = gzip.decompress((FROZEN / "cases.jsonl.gz").read_bytes()).decode().splitlines()
    fleets: list[Fleet] = []
    found = []
    for line in lines:
        said = json.loads(line)
        if "entry" not in said:
            fleets.append(load(line.encode()))
            continue
        kind: Any = ENTRIES[said["type"]]
        entry = adapter(kind).validate_json(json.dumps(said["entry"]))
        found.append(Case(fleet=fleets[said["fleet"]], entry=entry))
    return tuple(found)


def verdict(case: Case, version: int) -> str:
    """What fold version `version` makes of it."""
    fleet = apply_version(case.fleet, version)
    why = illegal(fleet, case.entry)
    return f"illegal: {why}" if why is not None else f"after: {digest(apply(fleet, case.entry))}"


def apply_version(fleet: Fleet, version: int) -> Fleet:
    """The same fleet in a cell of another version."""
    made: Fleet = load(adapter(FleetRecord).dump_json(record(fleet), exclude_defaults=True))
    made.fold_version = version
    return made


def digest(fleet: Fleet) -> str:
    """A hash of what is not as by default: a field that came later and is not used changes none."""
    data = adapter(FleetRecord).dump_json(record(fleet), exclude_defaults=True)
    return sha256(data).hexdigest()[:16]


def edges() -> list[str]:
    """The state graph of jobs, an edge a line."""
    return sorted(f"{old} {entry} {new}" for (old, entry), new in TRANSITIONS.items())


def now(version: int) -> dict[str, list[str]]:
    """What this software says for a version."""
    return {"edges": edges(), "verdicts": [verdict(case, version) for case in cases()]}


def then(version: int) -> dict[str, list[str]]:
    """What was frozen for a version."""
    said: dict[str, list[str]] = json.loads((FROZEN / f"verdicts-{version}.json").read_text())
    return said


def versions() -> list[int]:
    """All fold versions that this software knows."""
    return list(range(1, FOLD_VERSION + 1))


def main() -> int:
    """Freeze the newest version anew."""
    for version in versions()[:-1]:
        if now(version)["verdicts"] != then(version)["verdicts"]:
            sys.stderr.write(f"fold version {version} says something else than it did: mend that\n")
            return 1
    text = json.dumps(now(FOLD_VERSION), indent=0) + "\n"
    (FROZEN / f"verdicts-{FOLD_VERSION}.json").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
