"""The tree of levels over the racks, how far apart two racks are, and what their nodes are built
of: the same whatever runs on them.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from immutables import Map

from rackwright.core.evolve import evolve
from rackwright.wire.nodes import Hardware, RackSpec

Path = tuple[str, ...]


class Capacity(NamedTuple):
    """What a node has beside its GPUs: cores, and memory in GB. 0: its agent did not say."""

    cores: float
    memory_gb: float


def capacity_of(hardware: Hardware) -> Capacity:
    """The cores and the memory that an agent found."""
    return Capacity(hardware.cores, hardware.memory_gb)


class Domain(NamedTuple):
    """One domain: its path from the root and the set of its racks (a bit per rack number).

    `narrow` is that set without the `first` bytes before its lowest rack, up to byte `end`.
    """

    path: Path
    racks: int
    first: int
    end: int
    narrow: int

    def count(self, racks: bytes) -> int:
        """How many of these racks (a set as bytes, see `index.to_bytes`) are in the domain.

        Racks of a domain were mostly defined together, so this looks at few bytes of a large cell.
        """
        here = int.from_bytes(racks[self.first : self.end], "little")
        return (here & self.narrow).bit_count()


Level = tuple[Domain, ...]


def domain(path: Path, racks: int) -> Domain:
    """The domain of these racks."""
    first = ((racks & -racks).bit_length() - 1) // 8
    return Domain(path, racks, first, (racks.bit_length() + 7) // 8, racks >> 8 * first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Domains by their path from the root, each as the set of its racks.

    A path is a tuple of names, so that `("b1",)` and `("b10",)` never meet by prefix. `levels[d]`
    are the domains at depth d (0 is the whole cell) in the order of their names. `models` are the
    racks by number of nodes and GPUs per node. `capacities` are the nodes that have joined by what
    they have beside GPUs: by rack, as a mask.
    """

    domains: Map[Path, int] = Map()
    paths: Map[int, Path] = Map()
    levels: tuple[Level, ...] = ()
    models: Map[tuple[int, int], int] = Map()
    capacities: Map[Capacity, Map[int, int]] = Map()
    all_racks: int = 0
    depth: int = 0

    def with_rack(self, number: int, spec: RackSpec) -> "Topology":
        """The tree with one more rack (or the same rack defined again, with more nodes)."""
        bit = 1 << number
        domains = self.domains
        levels = list(self.levels) + [()] * (len(spec.path) + 1 - len(self.levels))
        for depth in range(len(spec.path) + 1):
            path = spec.path[:depth]
            racks = domains.get(path, 0) | bit
            domains = domains.set(path, racks)
            levels[depth] = _put(levels[depth], path, racks)
        return evolve(
            self,
            domains=domains,
            paths=self.paths.set(number, spec.path),
            levels=tuple(levels),
            models=_remodelled(self.models, bit, (len(spec.nodes), spec.gpus_per_node)),
            all_racks=self.all_racks | bit,
            depth=max(self.depth, len(spec.path)),
        )

    def with_node(
        self, number: int, place: int, before: Hardware | None, after: Hardware
    ) -> "Topology":
        """The same once the node at a place of a rack has other hardware than before."""
        old = None if before is None else capacity_of(before)
        new = capacity_of(after)
        if old == new:
            return self
        found, bit = self.capacities, 1 << place
        if old is not None:
            here = found[old][number] & ~bit
            rest = found[old].set(number, here) if here else found[old].delete(number)
            found = found.set(old, rest) if rest else found.delete(old)
        racks = found.get(new, Map())
        racks = racks.set(number, racks.get(number, 0) | bit)
        return evolve(self, capacities=found.set(new, racks))

    def level(self, depth: int) -> Level:
        """Domains at that depth (0 is the whole cell), in the order of their names."""
        return self.levels[depth] if depth < len(self.levels) else ()

    def children(self, path: Path) -> Level:
        """Domains one level below that one, in the order of their names."""
        level = self.level(len(path) + 1)
        start = bisect_left(level, (path,))
        end = bisect_left(level, ((*path[:-1], path[-1] + "\0"),)) if path else len(level)
        return level[start:end]

    @property
    def largest_rack(self) -> int:
        """Nodes of the largest rack; 0 in a cell without racks."""
        return _most(self.models)[0]

    @property
    def gpus_per_node(self) -> int:
        """GPUs of the largest node there is, which is what a job's `gpus` are counted in."""
        return _most(self.models)[1]

    def distance(self, one: int, other: int) -> int:
        """Levels to climb until both racks are in one domain; 0 for the same rack."""
        if one == other:
            return 0
        left, right = self.paths[one], self.paths[other]
        shared = 0
        for a, b in zip(left, right, strict=False):
            if a != b:
                break
            shared += 1
        return 1 + max(len(left), len(right)) - shared


@lru_cache(maxsize=64)
def _most(models: Map[tuple[int, int], int]) -> tuple[int, int]:
    """Nodes of the largest rack and GPUs of the largest node: asked for at every decision."""
    return max((n for n, _ in models), default=0), max((g for _, g in models), default=0)


def _put(level: Level, path: Path, racks: int) -> Level:
    at = bisect_left(level, (path,))
    known = at < len(level) and level[at].path == path
    return (*level[:at], domain(path, racks), *level[at + known :])


def _remodelled(
    models: Map[tuple[int, int], int], bit: int, model: tuple[int, int]
) -> Map[tuple[int, int], int]:
    """Racks by model after the rack of `bit` became one of `model`."""
    for other, racks in sorted(models.items()):
        if racks & bit and other != model:
            rest = racks & ~bit
            models = models.set(other, rest) if rest else models.delete(other)
    return models.set(model, models.get(model, 0) | bit)
