"""Reasons of dead letters, counted."""

from s3lake.index.commit.dead_letter_reasons import MOST_REASONS, OTHERS, ReasonTally, merge_reasons, normalize_reason
from s3lake.index.commit.documents import RefusalReason, ReplayedDeadLetters


def test_a_reason_leaves_out_what_it_quotes_and_counts():
    assert normalize_reason("'amount' is 12.5 at byte 0x1f of \"a\nb\", not `int32`") == "… is … at byte … of …, not …"


def test_refusals_for_the_same_reason_are_one_that_names_the_first():
    tally = ReasonTally()
    tally.add("value", "no JSON at byte 3", 2, 70)
    tally.add("value", "no JSON at byte 9", 2, 71)
    tally.add("value", "no JSON at byte 0", 3, 1)

    assert tally.reasons == (RefusalReason("value", "no JSON at byte …", 3, 2, 70),)


def test_the_most_frequent_reason_comes_first_then_by_stage_and_reason():
    tally = ReasonTally()
    for stage, message in [("value", "b"), ("value", "a"), ("key", "z"), ("value", "often"), ("value", "often")]:
        tally.add(stage, message, 0, 0)

    assert [(one.stage, one.reason) for one in tally.reasons] == [
        ("value", "often"),
        ("key", "z"),
        ("value", "a"),
        ("value", "b"),
    ]


def test_reasons_that_are_too_many_are_counted_together_by_stage():
    tally = ReasonTally()
    for number in range(MOST_REASONS):
        tally.add("value", "x" * (number + 1), 0, number)
    tally.add("value", "one too many", 1, 0)
    assert RefusalReason("value", OTHERS, 1, 1, 0) in tally.reasons
    for number in range(1, 3):
        tally.add("value", f"too many {'y' * number}", 1, number)
    tally.add("value", "x", 1, 9)

    assert len(tally.reasons) == MOST_REASONS + 1
    assert tally.reasons[0] == RefusalReason("value", OTHERS, 3, 1, 0)
    assert tally.reasons[1] == RefusalReason("value", "x", 2, 0, 0)


def test_the_reasons_of_several_tasks_add_up_and_name_the_first_of_all():
    tasks = [
        [RefusalReason("key", "missing", 1, 0, 0), RefusalReason("value", "missing", 2, 1, 50)],
        [RefusalReason("value", "missing", 3, 1, 7)],
    ]

    assert merge_reasons(tasks) == (
        RefusalReason("value", "missing", 5, 1, 7),
        RefusalReason("key", "missing", 1, 0, 0),
    )


def test_replayed_dead_letters_are_counted_by_their_offsets():
    assert ReplayedDeadLetters("c1", 0, ((0, 5, 9), (1, 0, 1))).count == 5
