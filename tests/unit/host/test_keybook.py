"""What is written next, what is looked at first, and who waits for whom."""

from rackwright.core.machine import Project
from rackwright.host.keybook import KeyBook, There, Wanted
from rackwright.host.patience import STEP_S
from rackwright.wire.ids import LedgerId, RackId
from rackwright.wire.values import RackAssignments

LEDGER = LedgerId("l1")
KEY = ("assign", "r01")


def _wish(seq: int) -> Project:
    value = RackAssignments(rack=RackId("r01"), ledger=LEDGER, seq=seq)
    return Project(bucket="assign", key="r01", value=value)


def _wanted(seq: int) -> Wanted:
    return Wanted(value=_wish(seq).value, ledger=LEDGER, seq=seq)


def _there(seq: int, revision: int = 7) -> There:
    return There(revision=revision, ledger=LEDGER, seq=seq, value=_wish(seq).value)


def test_one_writer_and_the_newest_wish() -> None:
    book = KeyBook(0)
    assert list(book.want(_wish(5), LEDGER, 5)) == [KEY]
    assert list(book.want(_wish(6), LEDGER, 6)) == []
    assert not book.idle
    assert book.newest(KEY) == _wanted(6)
    book.wrote(KEY, _wanted(6), 1)
    assert book.newest(KEY) is None
    assert book.idle
    assert list(book.want(_wish(7), LEDGER, 7)) == [KEY]


def test_a_failed_attempt_is_made_again_unless_there_is_a_newer_wish() -> None:
    book = KeyBook(0)
    list(book.want(_wish(5), LEDGER, 5))
    first = book.newest(KEY)
    book.doubt(KEY)
    assert book.newest(KEY, first) == _wanted(5)
    list(book.want(_wish(6), LEDGER, 6))
    assert book.newest(KEY, first) == _wanted(6)


def test_the_first_copy_writes_a_new_key_without_a_look_until_it_was_wrong() -> None:
    book = KeyBook(0)
    assert book.known(KEY, _wanted(5)) == There()
    book.doubt(KEY)
    assert book.known(KEY, _wanted(5)) is None
    book.settled(KEY)
    assert book.known(KEY, _wanted(6)) == There()


def test_another_copy_looks_and_so_does_who_deletes() -> None:
    assert KeyBook(1).known(KEY, _wanted(5)) is None
    assert KeyBook(0).known(KEY, Wanted(value=None, ledger=LEDGER, seq=5)) is None


def test_what_was_written_is_known_and_what_was_deleted_is_not() -> None:
    book = KeyBook(1)
    book.wrote(KEY, _wanted(5), 3)
    assert book.known(KEY, _wanted(6)) == _there(5, revision=3)
    book.wrote(KEY, Wanted(value=None, ledger=LEDGER, seq=6), 4)
    assert book.known(KEY, _wanted(7)) is None


def test_patience_ends_with_the_betters_silence_and_returns_with_their_word() -> None:
    book = KeyBook(2)
    assert book.patience_s == 2 * STEP_S
    book.wrote(KEY, _wanted(5), 1)
    assert book.patience_s == 0.0
    book.found(_wanted(6), _there(5))
    assert book.patience_s == 0.0
    book.found(_wanted(6), _there(6))
    assert book.patience_s == 2 * STEP_S


def test_never_an_older_value_over_a_newer() -> None:
    assert _there(6).settles(_wanted(5))
    assert _there(5).settles(_wanted(5))
    assert not _there(4).settles(_wanted(5))
    other = Wanted(value=_wish(5).value, ledger=LedgerId("l2"), seq=5)
    assert not _there(6).settles(other)
    assert There().settles(Wanted(value=None, ledger=LEDGER, seq=5))
    assert not _there(4).settles(Wanted(value=None, ledger=LEDGER, seq=5))


def test_after_an_absence_of_the_bus_all_that_is_known_is_wanted_again() -> None:
    book = KeyBook(1)
    list(book.want(_wish(5), LEDGER, 5))
    book.newest(KEY)
    book.wrote(KEY, _wanted(5), 3)
    book.newest(KEY)
    assert list(book.look_again()) == [KEY]
    assert book.newest(KEY) == _wanted(5)
    assert book.known(KEY, _wanted(5)) is None
