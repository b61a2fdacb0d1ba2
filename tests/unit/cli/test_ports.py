"""Each service of a cell gets a port of its own, also when the system names one twice."""

from rackwright.cli.stack import free_port_besides


def test_a_port_that_was_given_out_is_not_given_out_again() -> None:
    found = iter([40_001, 40_001, 40_002, 40_003])
    taken: list[int] = []
    for _ in range(3):
        taken.append(free_port_besides(taken, lambda: next(found)))
    assert taken == [40_001, 40_002, 40_003]
