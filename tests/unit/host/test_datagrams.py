"""The port of neighbours, on the loopback: what has the key is heard, and not too much of it."""

import asyncio

from rackwright.host.datagrams import MOST_A_SECOND, Address, Datagrams
from rackwright.wire.ids import CellName, NodeId
from rackwright.wire.neighbours import Question, key_of, seal

KEY = key_of("secret", "cell")
ASKED = Question(cell=CellName("cell"), node=NodeId("a"), to=NodeId("b"), nonce="0" * 32)
HERE = "127.0.0.1"


async def test_what_is_sealed_with_the_key_is_told_with_its_sender() -> None:
    heard: asyncio.Queue[tuple[object, Address]] = asyncio.Queue()
    there = Datagrams(KEY, lambda message, address: heard.put_nowait((message, address)))
    here = Datagrams(KEY, lambda *_: None)
    other = Datagrams(key_of("another", "cell"), lambda *_: None)
    for one in (there, here, other):
        await one.open(("127.0.0.1", 0))
    try:
        other.send(ASKED, (HERE, there.port))
        here.send(ASKED, (HERE, there.port))
        assert await heard.get() == (ASKED, (HERE, here.port))
        assert heard.empty()
    finally:
        for one in (there, here, other):
            one.close()


async def test_no_more_than_so_many_a_second_are_looked_at() -> None:
    heard: list[object] = []
    port = Datagrams(KEY, lambda message, _: heard.append(message))
    data = seal(KEY, ASKED)
    before = int(asyncio.get_running_loop().time())
    for _ in range(MOST_A_SECOND + 10):
        port.datagram_received(data, (HERE, 9))
    seconds = int(asyncio.get_running_loop().time()) - before + 1
    assert len(heard) + port.dropped == MOST_A_SECOND + 10
    assert len(heard) <= MOST_A_SECOND * seconds


async def test_names_are_looked_up_and_unknown_ones_are_none() -> None:
    port = Datagrams(KEY, lambda *_: None)
    assert await port.resolve("127.0.0.1") == HERE
    assert await port.resolve("no such host.invalid") is None
