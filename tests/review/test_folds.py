"""The folds of changed configs."""

from tpucfg.changes.config_diff import config_difference
from tpucfg.changes.facts import Scope
from tpucfg.review.folds import difference_markdown


def test_fold_names_a_key_with_dots_in_full() -> None:
    """The last key of a path is the name of a field, also if it contains dots, and a flag is its own name."""
    key = Scope("dev", "v6e-8")
    configs = [
        {
            key: {
                "labels": {"kueue.x-k8s.io/queue-name": queue},
                "args": [f"--model.layers={layers}"],
                "zones": [zone],
            }
        }
        for queue, layers, zone in (("a", 1, "x"), ("b", 2, "y"))
    ]

    comment = difference_markdown(config_difference(*configs))

    assert "</code>: kueue.x-k8s.io/queue-name, --model.layers, zones[0]</summary>" in comment
