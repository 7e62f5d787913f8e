"""Which of several sources counts."""

import pytest

from s3lake.errors import ConfigurationError
from s3lake.land.adopt.claims import Claim, Evidence, Start, decide, exact, table


def evidence(*claims, log=(0, 1000), **more):
    return Evidence("orders", {0: claims} if claims else {}, {0: log, **more}, places={"group": "group connect-x"})


def decided(*claims, trust=None):
    return decide(evidence(*claims), trust)[0]


def refused(*claims, trust=None):
    with pytest.raises(ConfigurationError) as refusal:
        decide(evidence(*claims), trust)
    return str(refusal.value).splitlines()


INDEX, GROUP, OBJECTS = exact("index", 101), exact("group", 101), exact("objects", 101)


@pytest.mark.parametrize(
    ("claims", "source"),
    [
        ((INDEX, GROUP, OBJECTS), "index"),
        ((GROUP, OBJECTS), "group"),
        ((INDEX,), "index"),
        ((GROUP,), "group"),
        ((OBJECTS,), "objects"),
        ((INDEX, Claim("group", 90, 90, None)), "index"),
        ((GROUP, Claim("objects", 95, 95, None)), "group"),
        ((Claim("group", 100, 100, 101), OBJECTS), "objects"),
        ((Claim("group", 101, 101, 102), Claim("objects", 101, 0, 101)), "group"),
    ],
)
def test_sources_that_leave_one_offset_decide(claims, source):
    assert decided(*claims) == Start(101, source)


@pytest.mark.parametrize(
    "claims",
    [
        (INDEX, exact("group", 90)),
        (INDEX, exact("objects", 111)),
        (GROUP, exact("objects", 111)),
        (INDEX, GROUP, exact("objects", 90)),
        (GROUP, Claim("objects", 105, 105, None)),
        (INDEX, Claim("group", 102, 102, None)),
    ],
)
def test_sources_that_contradict_each_other_are_refused(claims):
    assert refused(*claims)[0] == "topic orders: the sources contradict each other about where to go on"


@pytest.mark.parametrize(
    "claims",
    [
        (Claim("objects", 105, 105, None),),
        (Claim("group", 100, 100, 101),),
        (Claim("group", 100, 100, 101), Claim("objects", 110, 0, 110)),
        (Claim("index", None, 50, 101),),
        (Claim("index", None, 101, 101),),
        (Claim("index", None, 50, 101), Claim("objects", 101, 0, 101)),
        (Claim("index", None, 50, 101), Claim("group", 50, 50, 51)),
    ],
)
def test_sources_that_leave_doubt_are_refused(claims):
    assert refused(*claims)[0] == "topic orders: the sources leave doubt about where to go on"


def test_the_refusal_says_what_each_source_says_and_what_to_do():
    assert refused(INDEX, exact("group", 90, "it may lag"), Claim("objects", 95, 95, None)) == [
        "topic orders: the sources contradict each other about where to go on",
        "partition  index  group  objects     log",
        "0          101    90     95 or more  0 to 1000",
        "partition 0, group: it may lag",
        "Say which to trust: --trust index or --trust group or --trust objects. One that is too low lands records "
        "twice, one that is too high leaves a gap",
    ]


@pytest.mark.parametrize(("trust", "offset"), [("index", 101), ("group", 90), ("objects", 95)])
def test_the_source_that_is_trusted_decides(trust, offset):
    claims = INDEX, exact("group", 90), Claim("objects", 95, 95, None)
    assert decided(*claims, trust=trust) == Start(offset, trust)


def test_where_the_trusted_source_is_silent_the_others_must_agree():
    assert decided(GROUP, OBJECTS, trust="index") == Start(101, "group")
    assert "contradict" in refused(GROUP, exact("objects", 5), trust="index")[0]


def test_a_source_that_names_no_offset_cannot_be_trusted():
    claim = Claim("index", None, 50, 101, "start the connector once more")
    assert refused(claim, trust="index") == [
        "topic orders: the sources leave doubt about where to go on",
        "partition  index      group  objects  log",
        "0          50 to 101  -      -        0 to 1000",
        "partition 0, index: start the connector once more",
        "No source can be trusted by itself here: do what the notes say, then adopt again",
    ]


def test_a_partition_that_nobody_speaks_of_begins_at_the_log_start():
    found = Evidence("orders", {0: (GROUP,)}, {0: (0, 1000), 1: (7, 9)})
    assert decide(found) == {0: Start(101, "group"), 1: Start(7, "log start")}


def test_a_topic_that_nobody_speaks_of_is_refused_with_where_was_looked():
    assert refused() == [
        "topic orders: nothing of a connector was found, though the topic has records. Looked at:",
        "  group: group connect-x",
        "Correct the connector's name, bucket or prefix; to land the topic without a connector before it, do not "
        "adopt it",
    ]


def test_an_empty_topic_that_nobody_speaks_of_begins_where_it_is():
    assert decide(Evidence("orders", {}, {0: (5, 5)})) == {0: Start(5, "log start")}


def test_every_wrong_partition_is_in_one_refusal():
    found = Evidence(
        "orders", {0: (INDEX,), 1: (INDEX, exact("group", 1)), 2: (GROUP, exact("objects", 2))}, {0: (0, 9)}
    )
    with pytest.raises(ConfigurationError) as refusal:
        decide(found)
    assert [line.split()[0] for line in str(refusal.value).splitlines()[2:4]] == ["1", "2"]


def test_the_table_has_every_partition():
    found = Evidence("orders", {1: (INDEX, Claim("objects", 3, 0, 3))}, {0: (0, 9), 1: (2, 200)})
    assert table(found) == [
        "partition  index  group  objects  log",
        "0          -      -      -        0 to 9",
        "1          101    -      up to 3  2 to 200",
    ]
