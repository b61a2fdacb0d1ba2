"""The declarations: limits on everything, intakes where clients publish, safe names."""

from __future__ import annotations

import pytest

from rackwright.bus.streams import (
    PRODUCTION,
    Discard,
    Kind,
    Limits,
    Storage,
    bucket_name,
    declare,
)


@pytest.mark.parametrize("limits", [Limits(), PRODUCTION])
@pytest.mark.parametrize("replicas", [1, 3, 5])
def test_every_stream_is_bounded_in_size_and_message(limits: Limits, replicas: int) -> None:
    for spec in declare("lab", replicas=replicas, limits=limits).values():
        assert spec.max_bytes > 0
        assert 0 < spec.max_msg_size <= 256 * 1024
        assert spec.max_bytes > spec.max_msg_size


def test_what_may_never_be_lost_refuses_the_newest() -> None:
    specs = declare("lab")
    refusing = {kind for kind, spec in specs.items() if spec.discard is Discard.NEW}
    assert refusing == {Kind.LEDGER, Kind.WISH, Kind.ASSIGN, Kind.JOBS, Kind.SNAP}
    ledger = specs[Kind.LEDGER]
    assert (ledger.storage, ledger.max_age_s, ledger.deny_delete, ledger.direct) == (
        Storage.FILE,
        0.0,
        True,
        False,
    )


@pytest.mark.parametrize("replicas", [3, 5])
def test_clients_publish_only_into_streams_of_one_replica(replicas: int) -> None:
    specs = declare("lab", replicas=replicas)
    taken = {
        subject: spec.replicas
        for spec in specs.values()
        for subject in spec.config()["subjects"]  # type: ignore[attr-defined]
    }
    for kind in ("wish", "signal", "status", "dead"):
        assert taken[f"rackwright.lab.{kind}.>"] == 1
    assert taken["rackwright.lab.ledger.>"] == replicas
    assert specs[Kind.WISH].replicas == replicas
    assert specs[Kind.WISH].config()["sources"] == [{"name": specs[Kind.INTAKE].name}]


def test_no_two_streams_take_the_same_subjects() -> None:
    for replicas in (1, 3):
        subjects = [
            subject
            for spec in declare("lab", replicas=replicas).values()
            for subject in spec.config()["subjects"]  # type: ignore[attr-defined]
        ]
        assert len(subjects) == len(set(subjects))


def test_buckets_have_the_names_nats_kv_expects() -> None:
    spec = declare("lab")[Kind.ASSIGN]
    assert spec.name == f"KV_{bucket_name('lab', Kind.ASSIGN)}" == "KV_rackwright_lab_assign"
    assert spec.root == "$KV.rackwright_lab_assign."


@pytest.mark.parametrize("cell", ["", "Lab", "a.b", "a*", "-a", "a-", "a b", "x" * 49])
def test_a_cell_with_an_unsafe_name_is_refused(cell: str) -> None:
    with pytest.raises(ValueError, match="cell"):
        declare(cell)


@pytest.mark.parametrize("replicas", [0, 2, 4, 7, -1])
def test_an_impossible_number_of_replicas_is_refused(replicas: int) -> None:
    with pytest.raises(ValueError, match="replicas"):
        declare("lab", replicas=replicas)
