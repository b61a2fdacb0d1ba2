"""The tree of levels over the racks, and how far apart two racks are; the same in every state."""

from dataclasses import dataclass

from immutables import Map

from rackwright.core.evolve import evolve
from rackwright.wire.nodes import RackSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Domains by their path from the root, each as the set of its racks (a bit per rack number).

    A path is a tuple of names, so that `("b1",)` and `("b10",)` never meet by prefix.
    """

    domains: Map[tuple[str, ...], int] = Map()
    paths: Map[int, tuple[str, ...]] = Map()
    all_racks: int = 0
    depth: int = 0

    def with_rack(self, number: int, spec: RackSpec) -> "Topology":
        """The tree with one more rack (or the same rack defined again)."""
        bit = 1 << number
        domains = self.domains
        for level in range(len(spec.path) + 1):
            domain = spec.path[:level]
            domains = domains.set(domain, domains.get(domain, 0) | bit)
        return evolve(
            self,
            domains=domains,
            paths=self.paths.set(number, spec.path),
            all_racks=self.all_racks | bit,
            depth=max(self.depth, len(spec.path)),
        )

    def level(self, depth: int) -> list[tuple[tuple[str, ...], int]]:
        """Domains at that depth (0 is the whole cell), in the order of their names."""
        return sorted((path, racks) for path, racks in self.domains.items() if len(path) == depth)

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
