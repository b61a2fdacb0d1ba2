"""Datagrams between agents: only what the cell's key has sealed is a message."""

import hmac

import pytest

from rackwright.wire.ids import CellName, NodeId
from rackwright.wire.neighbours import MOST_BYTES, Answer, Question, key_of, seal, unseal

KEY = key_of("secret", "cell")
NONCE = "0123456789abcdef" * 2
ASKED = Question(cell=CellName("cell"), node=NodeId("a"), to=NodeId("b"), nonce=NONCE)
SAID = Answer(cell=CellName("cell"), node=NodeId("b"), to=NodeId("a"), nonce=NONCE, away=True)


@pytest.mark.parametrize("message", [ASKED, SAID])
def test_what_is_sealed_is_read(message: Question | Answer) -> None:
    assert unseal(KEY, seal(KEY, message)) == message


def test_another_secret_or_cell_is_another_key() -> None:
    data = seal(KEY, SAID)
    assert unseal(key_of("other", "cell"), data) is None
    assert unseal(key_of("secret", "other"), data) is None


def test_no_bit_of_it_can_be_changed() -> None:
    data = seal(KEY, SAID)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        assert unseal(KEY, bytes(changed)) is None, place


def test_a_question_is_no_answer() -> None:
    asked, said = seal(KEY, ASKED), seal(KEY, SAID)
    assert unseal(KEY, said[:4] + asked[4:]) is None


@pytest.mark.parametrize("data", [b"", b"rwq1", b"rwq1" + bytes(32), bytes(MOST_BYTES + 1)])
def test_noise_is_nothing(data: bytes) -> None:
    assert unseal(KEY, data) is None


def test_a_sealed_message_of_another_shape_is_nothing() -> None:
    body = b'{"cell":"cell","node":"b","to":"a","nonce":"short","away":true}'
    data = b"rwa1" + hmac.digest(KEY, b"rwa1" + body, "sha256") + body
    assert unseal(KEY, data) is None
