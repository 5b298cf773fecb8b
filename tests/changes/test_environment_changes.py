"""Changes to location, bucket and protection of environments, and removed environments."""

from spec_changes import impact, statements
from spec_factory import SPEC, spec


def test_new_region_names_the_consequence_for_the_data() -> None:
    """The old bucket is kept with its objects, or deleted with them, which is destructive."""
    moved = {"project": "my-project-dev", "region": "europe-west4"}
    europe = spec(environments={"dev": moved}, sizes=["v2-8"])
    losing = spec(
        environments={"dev": {**SPEC["environments"]["dev"], "keep_data": False}}, sizes=["v2-8"]
    )

    (kept, _) = impact(spec(sizes=["v2-8"]), europe).statements
    assert "stays with its objects" in kept.plain
    assert not kept.statement.destructive
    (deleted, *_) = impact(losing, europe).statements
    assert "is deleted with its objects" in deleted.plain
    assert deleted.statement.destructive


def test_lifted_protection_is_destructive() -> None:
    """Lifted protection is destructive, and added protection is not."""
    unprotected, protected = (
        spec(environments={"dev": {**SPEC["environments"]["dev"], "protect": protect}})
        for protect in (False, True)
    )

    assert [
        located.statement.destructive for located in impact(protected, unprotected).statements
    ] == [True]
    assert [
        located.statement.destructive for located in impact(unprotected, protected).statements
    ] == [False]


def test_removed_environment_keeps_its_stack() -> None:
    """The statement has the command that deletes the stack's resources, also if the whole spec is removed."""
    two = spec(
        environments={
            **SPEC["environments"],
            "prod": {"project": "p-prod-1", "region": "us-central1"},
        }
    )

    assert statements(two, spec()) == [
        "prod: removed from the spec: its stack keeps all resources until you run pulumi destroy --stack prod"
    ]
    assert len(statements(two, None)) == 2
    spot = {
        "project": "p-prod-1",
        "region": "us-central1",
        "target": "cloud-tpu",
        "capacity": "spot",
    }
    assert statements(spec(), spec(environments={**SPEC["environments"], "prod": spot})) == [
        (
            "prod: new environment: us-docker.pkg.dev/my-project/train/mnist:1.0 with the bucket "
            "p-prod-1-mnist-prod-us-central1, cloud-tpu in p-prod-1 (us-central1), spot, v2-8, v2-32"
        )
    ]


def test_new_environment_on_an_existing_bucket_is_access() -> None:
    """A bucket that exists has objects of others; a new one has none."""
    prod = {
        "project": "p-prod-1",
        "region": "us-central1",
        "bucket": {"name": "models", "create": False},
    }
    added = impact(spec(), spec(environments={**SPEC["environments"], "prod": prod})).statements

    assert [located.plain for located in added if located.statement.risk] == [
        "prod: jobs read and write models, a bucket that the stack does not make"
    ]


def test_removed_protected_environment_is_destructive() -> None:
    """Pulumi refuses to destroy protected resources, so one command is not enough."""
    prod = {"project": "p-prod-1", "region": "us-central1", "protect": True}
    (removed,) = impact(
        spec(environments={**SPEC["environments"], "prod": prod}), spec()
    ).statements

    assert removed.statement.destructive
    assert removed.plain == (
        "prod: removed from the spec while protected: its stack keeps all resources, and Pulumi refuses to delete them"
    )


def test_equal_changes_of_many_environments_are_one_statement() -> None:
    """Of many environments the first are named; a risk whose value differs has a statement for each."""
    before, after = (
        spec(
            environments={
                f"env-{number}": {"project": f"p-env-{number}", "region": region}
                for number in range(1, 51)
            }
        )
        for region in ("us-central1", "europe-west4")
    )
    about_buckets, others = (
        [text for text in statements(before, after) if ("bucket" in text) is is_one]
        for is_one in (True, False)
    )

    assert len(about_buckets) == 50
    assert others[0].startswith(
        "50 environments (env-1, env-10, env-11, env-12, env-13, env-14, env-15, env-16 and 42 "
    )
