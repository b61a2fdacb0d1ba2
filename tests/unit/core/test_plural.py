"""What is said of one thing is said of one."""

import pytest

from rackwright.core.plural import digits, singular


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 nodes in 1 slices on 1 racks", "1 node in 1 slice on 1 rack"),
        ("1 ranks are ready", "1 rank is ready"),
        ("1 racks fit, and 3 would", "1 rack fits, and 3 would"),
        ("1 whole racks are kept", "1 whole rack is kept"),
        ("only 1 racks have 4 together", "only 1 rack has 4 together"),
        ("1 GPUs, 1 tries, 1 processes", "1 GPU, 1 try, 1 process"),
        ("11 nodes, 0.1 hours, 2 slices", "11 nodes, 0.1 hours, 2 slices"),
        ("r-1 nodes, v1.1 nodes", "r-1 nodes, v1.1 nodes"),
        ("1 notes of hand", "1 notes of hand"),
        ("", ""),
    ],
)
def test_one_and_more(text: str, said: str) -> None:
    assert singular(text) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [(1813.4, "1,813"), (53.21, "53.2"), (0.0143, "0.0143"), (8.3e-9, "under 0.0001"), (0.0, "0")],
)
def test_no_number_is_said_in_powers_of_ten(number: float, said: str) -> None:
    assert digits(number) == said
