"""Host lists as Slurm writes them."""

import pytest

from rackwright.host.files.hostlist import MAX_HOSTS, HostlistError, expand


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[3]", ["n3"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[1-2,07,10-11]", ["n1", "n2", "n07", "n10", "n11"]),
        ("n[1, 3]", ["n1", "n3"]),
        ("a1, b[1-2]", ["a1", "b1", "b2"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("n[1-2]-ib", ["n1-ib", "n2-ib"]),
        ("[1101-1102]", ["1101", "1102"]),
        ("n1,n1", ["n1", "n1"]),
    ],
)
def test_expands(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("n[3-1]", "runs backwards"),
        ("n[1-]", "must hold numbers and ranges"),
        ("n[]", "must hold numbers and ranges"),
        ("n[a-c]", "must hold numbers and ranges"),
        ("n[1-2-3]", "must hold numbers and ranges"),
        ("n[-1]", "must hold numbers and ranges"),
        ("n[1,]", "must hold numbers and ranges"),
        ("n[\u0661-\u0663]", "must hold numbers and ranges"),
        ("n[1-2", "'[' without its ']'"),
        ("n1-2]", "']' without its '['"),
        ("n[1-[2-3]]", "a bracket inside a bracket"),
        ("n1,,n2", "a name is missing"),
        ("n1,", "a name is missing"),
        ("", "a name is missing"),
        ("n[0-999999999999999999]", f"at most {MAX_HOSTS} are read"),
        ("a[1-999]b[1-999]c[1-999]", f"stands for {999**3} names"),
        ("n[1-4096],n5000", f"at most {MAX_HOSTS} are read"),
    ],
)
def test_refuses(text: str, problem: str) -> None:
    with pytest.raises(HostlistError) as caught:
        expand(text)
    assert problem in str(caught.value)


def test_as_many_as_are_allowed() -> None:
    assert len(expand(f"n[1-{MAX_HOSTS}]")) == MAX_HOSTS
