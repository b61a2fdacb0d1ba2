"""Racks out of each format, and what no topology may say."""

import pytest

from rackwright.host.files.text import FileError
from rackwright.host.files.topologyfile import is_shorthand, read_topology
from rackwright.wire.ids import NodeId, RackId
from rackwright.wire.nodes import RackSpec


def rack(name: str, nodes: str, *, path: tuple[str, ...] = (), gpus_per_node: int = 4) -> RackSpec:
    return RackSpec(
        rack=RackId(name),
        path=path,
        nodes=tuple(NodeId(node) for node in nodes.split()),
        gpus_per_node=gpus_per_node,
    )


def error(text: str | bytes) -> str:
    with pytest.raises(FileError) as caught:
        read_topology(text, name="topo")
    return str(caught.value)


# Sizes alone.


def test_a_size_makes_racks() -> None:
    assert read_topology("2x3") == (
        rack("r01", "r01-n01 r01-n02 r01-n03"),
        rack("r02", "r02-n01 r02-n02 r02-n03"),
    )


def test_a_size_with_gpus() -> None:
    racks = read_topology(" 140x18x8\n")
    assert len(racks) == 140
    assert {(len(one.nodes), one.gpus_per_node) for one in racks} == {(18, 8)}
    assert (racks[0].rack, racks[-1].nodes[-1]) == ("r001", "r140-n18")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0x18", "0 racks, 1 to 100000"),
        ("4x0", "0 nodes in a rack, 1 to 62"),
        ("4x63", "63 nodes in a rack, 1 to 62"),
        ("50000x18", "900000 nodes, at most 400000"),
        ("4x18x17", "17 GPUs a node, 0 to 16"),
        ("999999x1", "999999 racks"),
    ],
)
def test_sizes_that_cannot_be(text: str, says: str) -> None:
    assert is_shorthand(text)
    assert says in error(text)


@pytest.mark.parametrize("text", ["4x", "x18", "4x18x", "-1x18", "4 x 18", "4x18x4x1"])
def test_what_is_nearly_a_size_is_no_topology(text: str) -> None:
    assert not is_shorthand(text)
    assert "is no topology; known are our YAML" in error(text)


# Our own YAML.

OWN = """\
gpus_per_node: 8
racks:
- rack: r01
  path: [hall-1, block-1]
  nodes: "n[001-003]"
- rack: r02
  path: hall-1
  nodes: ["m[1-2]", m9]
  gpus_per_node: 4
- {rack: 3, nodes: 0007}
"""


def test_our_own_yaml() -> None:
    assert read_topology(OWN) == (
        rack("r01", "n001 n002 n003", path=("hall-1", "block-1"), gpus_per_node=8),
        rack("r02", "m1 m2 m9", path=("hall-1",)),
        rack("3", "0007", gpus_per_node=8),
    )


def one(text: str) -> str:
    return f"racks:\n- rack: a\n  {text}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "racks:\n- {rack: a, nodes: 'n[1-3]'}\n- {rack: b, nodes: n3}\n",
            "topo:3: node 'n3' is in rack 'a' (line 2) and in rack 'b'; a node has one rack",
        ),
        (
            "racks:\n- {rack: a, nodes: n1}\n- {rack: a, nodes: n2}\n",
            "topo:3: rack 'a' stands here again, first on line 2",
        ),
        (one("nodes: n1,n1"), "topo:2: rack 'a' names node 'n1' twice"),
        (one("nodes: []"), "topo:2: rack 'a' has no nodes"),
        (one("nodes: n[1-63]"), "topo:2: rack 'a' has 63 nodes, at most 62 are possible"),
        (one("nodes: n[3-1]"), "topo:2: 'n[3-1]': the range 3-1 runs backwards"),
        (one("nodes: n1.example.org"), "is no name for a node"),
        (one("nodes: n1.example.org"), "use the short host name"),
        (one("nodes: 'n 1'"), "is no name for a node"),
        ("racks:\n- {rack: a.b, nodes: n1}\n", "'a.b' is no name for a rack"),
        (f"racks:\n- {{rack: {'a' * 64}, nodes: n1}}\n", "is no name for a rack"),
        (one("node: n1"), "topo:3: racks.0.node: is not known here; did you mean 'nodes'?"),
        ("racks:\n- {nodes: n1}\n", "topo:2: racks.0: rack: is missing"),
        (one("path: [x]"), "topo:2: racks.0: nodes: is missing"),
        (one("nodes: {a: b}"), "racks.0.nodes: must be a text, not a mapping"),
        (one("nodes: [true]"), "racks.0.nodes.0: must be a text, not true"),
        (one("nodes: n1\n  gpus_per_node: 17"), "racks.0.gpus_per_node: must be a whole number, 0"),
        (one("nodes: n1\n  gpus_per_node: 4.0"), "not the number 4.0"),
        ("racks: 3\n", "topo:1: racks: must be a list, not the number 3"),
        ("racks: [3]\n", "racks.0: must be a rack (names and values), not the number 3"),
        ("racks: []\n", "topo: tells of no rack"),
        ("", "topo: is empty"),
        ("hello", "is no topology; known are our YAML"),
        ("[1, 2]", "is no topology"),
        ("racks:\n\t- a\n", "topo:2: is indented with a tab"),
        (b"racks: \xff", "topo:1: byte 7 is not UTF-8"),
    ],
)
def test_what_our_yaml_may_not_say(text: str | bytes, says: str) -> None:
    assert says in error(text)


def test_as_many_nodes_as_a_rack_may_have() -> None:
    assert len(read_topology(one("nodes: n[1-62]"))[0].nodes) == 62


# Topograph's model.

TREE = """\
switches:
  core:
    labels: {region: east}
    switches: [spine-1, spine-2]
  spine-1:
    switches: [leaf-1, leaf-2]
  spine-2:
    switches: [leaf-3]
blocks:
"""


def block(
    switch: str, nodes: str, *, domain: str | None = None, sub_domain: str | None = None
) -> str:
    notes = {"domain": domain, "sub-domain": sub_domain}
    told = "".join(
        f"    accelerator.topology.test/{key}: {value}\n" for key, value in notes.items() if value
    )
    annotations = f"  annotations:\n{told}" if told else ""
    return f"- switch: {switch}\n  nodes: ['{nodes}']\n{annotations}"


def test_a_domain_is_a_rack_and_the_switches_above_it_its_path() -> None:
    text = TREE + block("leaf-1", "n[01-02]", domain="d1") + block("leaf-3", "m1", domain="d2")
    assert read_topology(text) == (
        rack("d1", "n01 n02", path=("core", "spine-1")),
        rack("d2", "m1", path=("core", "spine-2")),
    )


def test_a_domain_over_several_switches_lies_under_what_they_share() -> None:
    text = (
        TREE
        + block("leaf-1", "n1", domain="d1")
        + block("leaf-2", "n2", domain="d1")
        + block("leaf-2", "n3", domain="d2")
        + block("leaf-3", "n4", domain="d2")
    )
    assert read_topology(text) == (
        rack("d1", "n1 n2", path=("core", "spine-1")),
        rack("d2", "n3 n4", path=("core",)),
    )


def test_a_leaf_switch_with_two_racks_is_a_level() -> None:
    text = TREE + block("leaf-1", "n1", domain="d1") + block("leaf-1", "n2", domain="d2")
    assert [one.path for one in read_topology(text)] == [("core", "spine-1", "leaf-1")] * 2


def test_a_domain_too_large_for_a_rack_is_read_as_its_sub_domains() -> None:
    text = (
        TREE
        + block("leaf-1", "n[1-40]", domain="d1", sub_domain="s1")
        + block("leaf-2", "m[1-40]", domain="d1", sub_domain="s2")
    )
    racks = read_topology(text)
    assert [(one.rack, len(one.nodes), one.path) for one in racks] == [
        ("d1-s1", 40, ("core", "spine-1", "d1")),
        ("d1-s2", 40, ("core", "spine-1", "d1")),
    ]


def test_a_domain_that_fits_stays_one_rack() -> None:
    text = (
        TREE
        + block("leaf-1", "n[1-31]", domain="d1", sub_domain="s1")
        + block("leaf-2", "m[1-31]", domain="d1", sub_domain="s2")
    )
    assert [(one.rack, len(one.nodes)) for one in read_topology(text)] == [("d1", 62)]


def test_a_domain_too_large_without_sub_domains_is_refused() -> None:
    assert "rack 'd1' has 63 nodes, at most 62" in error(
        TREE + block("leaf-1", "n[1-63]", domain="d1")
    )


def test_a_clique_is_named_by_its_rack() -> None:
    cluster = "4d1f6d0c-9c7e-4f7e-9f8b-1f2e3d4c5b6a"
    text = TREE + block("leaf-1", "n1", domain=f"{cluster}.32766")
    assert read_topology(text)[0].rack == cluster


# Lesson 12: an unknown rack fell back to a wider network partition.


def test_an_unknown_rack_stays_unknown() -> None:
    text = TREE + block("leaf-1", "n[1-2]") + block("leaf-1", "n3", domain="d1")
    assert error(text) == "topo: 2 nodes have no rack (n1, n2); name it, or leave them out"
    known = read_topology(text, leave_out_unknown=True)
    assert [(one.rack, one.nodes) for one in known] == [("d1", ("n3",))]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            TREE + block("leaf-1", "n[1-3]", domain="d1") + block("leaf-2", "n3", domain="d2"),
            "topo:14: node 'n3' is in rack 'd1' (line 10) and in rack 'd2'",
        ),
        (
            "switches:\n  a: {switches: [b]}\n  b: {switches: [a]}\nblocks: []\n",
            "the tree has a loop",
        ),
        (
            "switches:\n  a: {switches: [c]}\n  b: {switches: [c]}\nblocks: []\n",
            "topo:3: switches.b.switches.0: switch 'c' is under 'a' and under 'b'",
        ),
        (TREE + block("leaf-1", "n[1-]", domain="d1"), "topo:10: block 0: 'n[1-]': [1-] must hold"),
        ("blocks: 3\n", "blocks: must be a list"),
        ("blocks: [3]\n", "blocks.0: must be a block"),
        ("blocks: []\n", "tells of no rack"),
    ],
)
def test_models_that_contradict_themselves(text: str, says: str) -> None:
    assert says in error(text)


# Slurm.

CONF = """\
# block001=d1
BlockName=rack1 Nodes=worker-rack1-[0-2]
blockname=rack10 nodes=worker-rack10-[0-1] # the same in any case
BlockName=rack2 \\
  Nodes=x[01-02],y1
BlockSizes=2,4
"""


def test_blocks_of_topology_conf() -> None:
    assert read_topology(CONF) == (
        rack("rack1", "worker-rack1-0 worker-rack1-1 worker-rack1-2"),
        rack("rack10", "worker-rack10-0 worker-rack10-1"),
        rack("rack2", "x01 x02 y1"),
    )


SLURM_YAML = """\
- topology: racks
  cluster_default: true
  block:
    block_sizes: [2]
    blocks:
    - block: b1
      nodes: n[1-2]
    - {block: b2, nodes: n3}
- topology: flat
  flat: true
"""


def test_blocks_of_topology_yaml() -> None:
    assert read_topology(SLURM_YAML, gpus_per_node=8) == (
        rack("b1", "n1 n2", gpus_per_node=8),
        rack("b2", "n3", gpus_per_node=8),
    )


SECOND = "- topology: other\n  block: {blocks: [{block: c1, nodes: n9}]}\n"


def test_the_default_of_several_block_topologies() -> None:
    assert [one.rack for one in read_topology(SECOND + SLURM_YAML)] == ["b1", "b2"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "BlockName=a Nodes=n[1-3]\nBlockName=b Nodes=n3\n",
            "topo:2: node 'n3' is in rack 'a' (line 1",
        ),
        ("BlockName=a Nodes=n1\nBlockName=a Nodes=n2\n", "topo:2: rack 'a' stands here again"),
        ("BlockName=a\n", "topo:1: a: Nodes= is missing"),
        ("BlockName=a Nodes=n[1-\n", "topo:1: a: 'n[1-': '[' without its ']'"),
        (
            "BlockName=a Nodes=n1\nNodes=n2\n",
            "topo:2: nodes: BlockName= or BlockSizes= was expected",
        ),
        (
            "BlockName=a Nodes=n1\nInclude more.conf\n",
            "topo:2: 'Include more.conf' is no Key=Value",
        ),
        ("SwitchName=s1 Nodes=n[1-18]\n", "has a switch tree and no blocks"),
        ("BlockSizes=18\n", "tells of no rack"),
        ("- topology: t\n  tree: {switches: []}\n", "has a switch tree and no blocks"),
        (SECOND + SECOND, "has 2 block topologies; mark one with cluster_default: true"),
        ("- topology: t\n  block: {blocks: [{block: a}]}\n", "block.blocks.0: nodes: is missing"),
    ],
)
def test_what_slurm_files_may_not_say(text: str, says: str) -> None:
    assert says in error(text)


# Alibaba's CSV.

HASH = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4


def test_the_access_switch_is_the_rack() -> None:
    text = f"ip,DSW,PSW,ASW\n{HASH},G1,P1,S1\nn2,G1,P1,S2\n{OTHER.upper()},G1,P1,S1\n"
    assert read_topology(text) == (
        rack("S1", "0123456789abcdef fedcba9876543210", path=("G1", "P1")),
        rack("S2", "n2", path=("G1", "P1")),
    )


def test_planes_are_no_level() -> None:
    text = "ip,DSW,PSW,ASW\nn1,G1,P1,S1\nn2,G1,P2,S1\nn3,G1,P1,S2\n"
    assert [(one.rack, one.path) for one in read_topology(text)] == [
        ("S1", ("G1",)),
        ("S2", ("G1",)),
    ]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("n1,G1,P1,S1\nn2,G2,P1,S1\n", "access switch S1 is under G1 (line 2) and G2 (line 3)"),
        ("n1,G1,P1\n", "topo:2: a line must have the four values"),
        (",G1,P1,S1\n", "topo:2: a line must have the four values"),
        ("n1,G1,P1,S1\nn1,G1,P1,S2\n", "topo:3: node 'n1' is in rack 'S1' (line 2)"),
        (f"{HASH},G1,P1,S1\n{HASH[:16]}{OTHER},G1,P1,S1\n", "names node '0123456789abcdef' twice"),
        ("10.0.0.1,G1,P1,S1\n", "'10.0.0.1' is no name for a node"),
        ("n1,G1,P1,\n", "1 nodes have no rack (n1)"),
        ("", "tells of no rack"),
    ],
)
def test_what_the_csv_may_not_say(rows: str, says: str) -> None:
    assert says in error(f"ip,DSW,PSW,ASW\n{rows}")
