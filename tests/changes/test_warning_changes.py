"""Warnings that a change adds or resolves."""

from spec_changes import impact
from spec_factory import spec
from tpucfg.findings import Finding

LADDER = ["v2-8", "v2-32", "v2-128"]


def messages(findings: tuple[Finding, ...]) -> list[str]:
    """Return the ids and messages."""
    return [f"{finding.id} {finding.message}" for finding in findings]


def test_a_warning_that_names_another_size_is_new() -> None:
    """The base warned of v2-128 already."""
    change = impact(spec(sizes=LADDER), spec(sizes=[*LADDER, "v2-256"]))
    assert messages(change.new_warnings) == [
        (
            "TPU041 the global batch grows from 1,024 to 16,384 (16×) on v2-128, 32,768 (32×) on v2-256; "
            "the threshold is 8×"
        )
    ]
    assert change.ended_warnings == ()


def test_warning_with_another_text_is_listed_and_has_not_ended() -> None:
    """Other figures of the same size, or one size less, change a warning."""
    change = impact(spec(sizes=LADDER), spec(sizes=LADDER, training__batch_size=2048))
    assert change.ended_warnings == ()
    assert messages(change.new_warnings) == [
        "TPU041 the global batch grows from 2,048 to 32,768 (16×) on v2-128; the threshold is 8×"
    ]
    assert impact(spec(sizes=[*LADDER, "v2-256"]), spec(sizes=LADDER)).ended_warnings == ()
