"""What a node without the bus makes of its witnesses' words."""

from rackwright.agent.alone import OUTSTANDING, Alone
from rackwright.agent.hold import NS, Hold
from rackwright.wire.ids import NodeId, SessionId
from rackwright.wire.nodes import Witnesses

MINE = SessionId("s1")
NAMES = tuple(NodeId(f"n{place}") for place in range(5))
TERMS = Witnesses(nodes=NAMES, step_s=30.0, alone_s=100.0)


def echoed_at(seconds: int) -> Hold:
    hold = Hold(session=MINE)
    hold.echoed(MINE, hold.sending(seconds * NS), 30.0, head=3)
    return hold


def words(alone: Alone, many: int, at: int, *, away: bool = True) -> None:
    for place in range(many):
        nonce = f"{place}-{at}"
        alone.ask(nonce, NAMES[place], at * NS)
        assert alone.answered(nonce, NAMES[place], away=away)


def test_more_than_half_of_the_witnesses_carry_the_lease_a_step_from_the_question() -> None:
    hold, alone = echoed_at(100), Alone(terms=TERMS)
    words(alone, 2, 120)
    assert alone.until(hold) == 0
    words(alone, 3, 121)
    assert alone.until(hold) == 151 * NS


def test_the_oldest_question_of_the_majority_counts() -> None:
    hold, alone = echoed_at(100), Alone(terms=TERMS)
    words(alone, 3, 120)
    words(alone, 2, 125)
    assert alone.until(hold) == 150 * NS


def test_no_words_carry_it_beyond_the_second_tier() -> None:
    hold, alone = echoed_at(100), Alone(terms=TERMS)
    words(alone, 5, 190)
    assert alone.until(hold) == 200 * NS


def test_a_session_without_any_echo_is_not_carried() -> None:
    alone = Alone(terms=TERMS)
    words(alone, 5, 120)
    assert alone.until(Hold(session=MINE)) == 0


def test_a_witness_with_the_bus_takes_its_word_back() -> None:
    hold, alone = echoed_at(100), Alone(terms=TERMS)
    words(alone, 3, 120)
    words(alone, 1, 121, away=False)
    assert alone.until(hold) == 0


def test_only_the_witness_that_was_asked_answers_and_only_once() -> None:
    alone = Alone(terms=TERMS)
    alone.ask("a", NAMES[0], 5 * NS)
    assert not alone.answered("a", NAMES[1], away=True)
    assert not alone.answered("b", NAMES[0], away=True)
    assert alone.answered("a", NAMES[0], away=True)
    assert not alone.answered("a", NAMES[0], away=True)
    assert alone.away == {NAMES[0]: 5 * NS}


def test_questions_that_nobody_answers_are_forgotten() -> None:
    alone = Alone(terms=TERMS)
    for number in range(OUTSTANDING + 1):
        alone.ask(str(number), NAMES[0], number)
    assert len(alone.asked) == OUTSTANDING
    assert not alone.answered("0", NAMES[0], away=True)


def test_other_terms_are_another_matter() -> None:
    hold, alone = echoed_at(100), Alone(terms=TERMS)
    words(alone, 3, 120)
    alone.agree(TERMS)
    assert alone.until(hold) == 150 * NS
    alone.agree(None)
    assert (alone.until(hold), alone.away) == (0, {})


def test_a_node_says_that_the_bus_is_away_only_after_its_promise() -> None:
    hold = Hold(session=MINE)
    assert not hold.away(10**12), "it has had no echo: it does not know"
    hold = echoed_at(100)
    assert hold.steady_s(105 * NS) == 10.0
    assert not hold.away(115 * NS)
    assert hold.away(115 * NS + 1)
    assert hold.steady_s(116 * NS) == 0.0


def test_a_promise_outlives_a_shorter_lease_and_the_session() -> None:
    hold = echoed_at(100)
    hold.echoed(MINE, hold.sending(101 * NS), 10.0, head=4)
    assert hold.steady_ns == 115 * NS
    renewed = Hold(session=SessionId("s2"), steady_ns=hold.steady_ns)
    assert renewed.steady_s(105 * NS) == 10.0
