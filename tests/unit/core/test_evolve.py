"""Changed copies and quick constructors are what `dataclasses` would have made."""

from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from rackwright.core.evolve import changer, evolve
from rackwright.wire.quick import quick


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """Field names that the written source could have used for itself."""

    kind: str
    record: int = 1
    made: tuple[int, ...] = ()


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    """The same, made quickly."""

    kind: str
    record: int = 1
    made: tuple[int, ...] = ()


def test_a_quick_one_is_like_a_plain_one() -> None:
    assert repr(Quick(kind="a", made=(1,))) == repr(Plain(kind="a", made=(1,))).replace(
        "Plain", "Quick"
    )
    assert Quick(kind="a") == Quick(kind="a", record=1, made=())
    assert hash(Quick(kind="a")) == hash(Quick(kind="a"))
    assert type(Quick(kind="a")) is Quick
    assert replace(Quick(kind="a"), record=7) == Quick(kind="a", record=7)


def test_a_quick_one_is_frozen_and_refuses_what_a_plain_one_does() -> None:
    with pytest.raises(FrozenInstanceError):
        Quick(kind="a").record = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Quick()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Quick(kind="a", other=1)  # type: ignore[call-arg]


def test_a_quick_one_has_the_fields_of_its_base_and_makes_defaults_anew() -> None:
    @quick
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Derived(Quick):
        many: list[int] = field(default_factory=list)

    one, other = Derived(kind="a"), Derived(kind="a", record=3, many=[4])
    assert (one.kind, one.record, one.many, other.record, other.many) == ("a", 1, [], 3, [4])
    assert one.many is not Derived(kind="a").many
    changed = changer(Derived, "record")
    assert changed(other, record=5) == evolve(other, record=5) == replace(other, record=5)


def test_what_cannot_be_made_quickly_says_so() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class WithCheck:
        one: int

        def __post_init__(self) -> None:
            raise ValueError

    with pytest.raises(TypeError, match="has a __post_init__"):
        quick(WithCheck)


@pytest.mark.parametrize("kind", [Plain, Quick])
def test_copies_change_what_was_named_alone(kind: type[Plain] | type[Quick]) -> None:
    old = kind(kind="a", made=(3,))
    changed = changer(kind, "kind", "record")
    assert changed(old, kind="b", record=2) == kind(kind="b", record=2, made=(3,))
    assert evolve(old, kind="b", record=2) == kind(kind="b", record=2, made=(3,))
    assert old == kind(kind="a", made=(3,))
    with pytest.raises(FrozenInstanceError):
        changed(old, kind="b", record=2).record = 4  # type: ignore[misc]


def test_a_field_that_is_none_is_refused() -> None:
    with pytest.raises(AttributeError, match="Plain has no field other"):
        changer(Plain, "other")
    with pytest.raises(AttributeError):
        evolve(Plain(kind="a"), other=1)
