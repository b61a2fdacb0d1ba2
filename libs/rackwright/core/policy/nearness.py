"""Which of equally good racks to take: those near the job's others, in as few domains as can be."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rackwright.core.index import bits, to_bytes
from rackwright.core.topology import Domain, Level, Path, Topology


def lowest(racks: int, count: int) -> list[int]:
    """The first racks of a set, by number."""
    found: list[int] = []
    for number in bits(racks):
        if len(found) == count:
            break
        found.append(number)
    return found


def nearest(
    topology: Topology, path: Path, racks: int, count: int, near: Iterable[int]
) -> list[int]:
    """`count` racks of a set (all of it if it has no more) in the domain at `path`.

    At each level first the domains that hold a rack of `near`. Then the domain that the rest fits
    into with least left over, or the fullest one if none is large enough. Ties by path.
    """
    close = [number for number in near if topology.paths[number][: len(path)] == path]
    if racks.bit_count() <= count or (count == 1 and not close):
        return lowest(racks, count)
    children = topology.children(path)
    if not children:
        return lowest(racks, count)
    picked: list[int] = []
    choices = _Choices.of(children, racks)
    while len(picked) < count and choices.left:
        wanted = count - len(picked)
        starts = {topology.paths[number][: len(path) + 1] for number in (*close, *picked)}
        child = choices.take(starts, wanted)
        picked += nearest(topology, child.path, racks & child.racks, wanted, close)
        racks &= ~child.racks
    return picked + lowest(racks, count - len(picked))


@dataclass(slots=True, kw_only=True)
class _Choices:
    """Domains that have racks to take, by path (with their number of racks) and by that number."""

    left: dict[Path, tuple[Domain, int]] = field(default_factory=dict)
    sizes: dict[int, dict[Path, None]] = field(default_factory=dict)

    @classmethod
    def of(cls, domains: Level, racks: int) -> "_Choices":
        """Those of the domains that hold some of these racks."""
        made = cls()
        here, read = to_bytes(racks), int.from_bytes
        for domain in reversed(domains):
            # Domain.count by hand: this line runs for every block of the cell.
            found = (read(here[domain[2] : domain[3]], "little") & domain[4]).bit_count()
            if found:
                made.left[domain.path] = (domain, found)
                made.sizes.setdefault(found, {})[domain.path] = None
        return made

    def take(self, starts: Iterable[Path], wanted: int) -> Domain:
        """The domain to go on with, one of `starts` if any of them is left."""
        close = sorted((self.left[path][1], path) for path in starts if path in self.left)
        if close:
            size, path = next((one for one in close if one[0] >= wanted), close[-1])
            if size < wanted:
                path = next(one for count, one in close if count == size)
        else:
            size = min((size for size in self.sizes if size >= wanted), default=max(self.sizes))
            path = next(reversed(self.sizes[size]))
        del self.sizes[size][path]
        if not self.sizes[size]:
            del self.sizes[size]
        return self.left.pop(path)[0]
