"""The record of a climb: every rung that was judged, with its reason, its numbers and its price."""

from rackwright.wire.reasons import Reason, Rung, RungTaken

Number = int | float | str


class Record:
    """Rungs in the order in which they were judged. Prices in GPU-hours, weighted by priority."""

    def __init__(self) -> None:
        self._rungs: list[RungTaken] = []

    def take(self, rung: Rung, code: str, price: float, **numbers: Number) -> None:
        """This rung it is."""
        self._note(rung, True, code, price, numbers)

    def skip(self, rung: Rung, code: str, price: float | None = None, **numbers: Number) -> None:
        """Not this one; without a price where there was nothing to price."""
        self._note(rung, False, code, price, numbers)

    def _note(
        self, rung: Rung, taken: bool, code: str, price: float | None, numbers: dict[str, Number]
    ) -> None:
        why = Reason(code=code, numbers=numbers)
        cost = None if price is None else round(price, 3)
        self._rungs.append(RungTaken(rung=rung, taken=taken, price_gpu_h=cost, reason=why))

    @property
    def restarted(self) -> tuple[RungTaken, ...]:
        """For the entry that restarts ranks in place."""
        return tuple(one for one in self._rungs if one.rung is Rung.RESTART and one.taken)

    @property
    def climbed(self) -> tuple[RungTaken, ...]:
        """For the entry that heals the others: a restart beside it has an entry of its own."""
        return tuple(one for one in self._rungs if one.rung is not Rung.RESTART or not one.taken)
