"""What a node does with an assignment: the orders, both outcomes of each rule."""

from rackwright.agent.obey import Forget, Go, GoOn, Prepare, Seen, Spend, Stop, accept, orders
from rackwright.agent.records import WorkerRecord, WorkerState
from rackwright.wire.ids import JobId, LedgerId, NodeId, RackId, SessionId, WorkerId
from rackwright.wire.values import AssignmentLine, NodeAssignment, RackAssignments, StopLine

SESSION = SessionId("s1")
NODE = NodeId("r1-n00")
W1 = WorkerId("j/0/1")


def line(worker: WorkerId = W1, *, open: bool = True) -> AssignmentLine:
    return AssignmentLine(worker=worker, job=JobId("j"), rank=0, membership=1, open=open)


def record(state: WorkerState, *, reaped: bool = True) -> dict[str, WorkerRecord]:
    return {W1: WorkerRecord(worker_id=W1, state=state, reaped=reaped)}


def assignment(*run: AssignmentLine, stop: tuple[StopLine, ...] = ()) -> NodeAssignment:
    return NodeAssignment(session=SESSION, run=run, stop=stop)


def value(seq: int, *, ledger: str = "l1", session: str = "s1") -> RackAssignments:
    nodes = {NODE: NodeAssignment(session=SessionId(session))}
    return RackAssignments(ledger=LedgerId(ledger), seq=seq, rack=RackId("r1"), nodes=nodes)


SEEN = Seen(ledger=LedgerId("l1"), seq=5)


def test_a_value_is_obeyed_when_it_is_new_and_of_this_session() -> None:
    assert accept(SEEN, SESSION, NODE, value(5)) is not None
    assert accept(SEEN, SESSION, NODE, value(6)) is not None
    assert accept(Seen(), SESSION, NODE, value(1)) is not None


def test_an_older_value_is_no_news() -> None:
    assert accept(SEEN, SESSION, NODE, value(4)) is None


def test_a_value_of_another_ledger_is_no_news() -> None:
    assert accept(SEEN, SESSION, NODE, value(9, ledger="l2")) is None


def test_a_value_for_another_session_is_no_news() -> None:
    assert accept(SEEN, SESSION, NODE, value(9, session="s0")) is None


def test_a_value_without_this_node_is_no_news() -> None:
    assert accept(SEEN, SESSION, NodeId("r1-n01"), value(9)) is None


def test_a_new_worker_is_prepared_even_while_its_gate_is_shut() -> None:
    shut = line(open=False)
    assert orders(assignment(shut), {}, frozenset()) == [Prepare(line=shut)]


def test_a_prepared_worker_starts_when_its_gate_is_open_and_not_before() -> None:
    held = record(WorkerState.PREPARED)
    assert orders(assignment(line(open=False)), held, frozenset()) == []
    assert orders(assignment(line()), held, frozenset()) == [Go(worker=W1)]


def test_a_running_worker_is_left_alone() -> None:
    assert orders(assignment(line()), record(WorkerState.RUNNING), frozenset()) == []


def test_an_ended_worker_is_never_started_again() -> None:
    for state in (WorkerState.EXITED, WorkerState.STOPPED, WorkerState.FENCED):
        assert orders(assignment(line()), record(state), frozenset()) == []


def test_a_worker_stops_by_a_line_and_only_once() -> None:
    stop = StopLine(worker=W1, grace_s=3.0)
    running = record(WorkerState.RUNNING)
    assert orders(assignment(stop=(stop,)), running, frozenset()) == [Stop(line=stop)]
    assert orders(assignment(stop=(stop,)), running, frozenset({W1})) == []


def test_absence_is_no_order() -> None:
    assert orders(assignment(), record(WorkerState.RUNNING), frozenset()) == []


def test_a_stop_of_a_worker_that_was_never_here_spends_its_id() -> None:
    stop = StopLine(worker=W1)
    assert orders(assignment(stop=(stop,)), {}, frozenset()) == [Spend(worker=W1)]


def test_an_ended_worker_is_told_of_until_nobody_asks_and_it_is_reaped() -> None:
    ended = record(WorkerState.EXITED)
    assert orders(assignment(stop=(StopLine(worker=W1),)), ended, frozenset()) == []
    assert orders(assignment(), ended, frozenset()) == [Forget(worker=W1)]
    assert orders(assignment(), record(WorkerState.EXITED, reaped=False), frozenset()) == []


def test_a_withdrawn_notice_lets_the_worker_go_on() -> None:
    running = record(WorkerState.RUNNING)
    assert orders(assignment(line()), running, frozenset({W1})) == [GoOn(worker=W1)]
