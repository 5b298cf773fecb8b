"""The identities of an environment's jobs, from the layers of each size."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spec_factory import project, spec
from tpucfg.plan.identities import Identity, SecretName, identities
from tpucfg.plan.naming import deletion_role_id

OWN = "tpu-mnist-dev@my-project-dev.iam.gserviceaccount.com"
SIZES = ["v5litepod-4", "v5litepod-8", "v5litepod-16"]


def identities_of(target: str = "cloud-tpu", **changes: Any) -> tuple[Identity, ...]:
    """Return the identities of the environment dev of a spec with three rungs."""
    data = spec(target=target, sizes=SIZES, training__tuned_on=SIZES[0], **changes)
    loaded = project(data)
    return identities(loaded, loaded.environments["dev"])


def account(email: str) -> dict[str, Any]:
    """Return an override with an account of its own."""
    return {"targets": {"cloud-tpu": {"service_account": f"{email}@p.iam.gserviceaccount.com"}}}


def test_a_plain_spec_has_one_identity_without_more_access() -> None:
    """Without layers, secrets and an end, there is the stack's account alone."""
    assert identities_of() == (Identity(OWN, is_created=True),)
    assert identities_of("gke") == (
        Identity(OWN, is_created=True, kubernetes="default/tpu-mnist-dev"),
    )


def test_the_environments_own_account_is_first() -> None:
    """An account that single sizes add follows, even if the smallest size has it."""
    result = identities_of(overrides={SIZES[0]: account("b"), SIZES[1]: account("a")})

    assert [identity.email for identity in result] == [
        OWN,
        "b@p.iam.gserviceaccount.com",
        "a@p.iam.gserviceaccount.com",
    ]
    assert [identity.is_created for identity in result] == [True, False, False]


def test_an_account_that_no_size_uses_is_no_identity() -> None:
    """If each size has an account, that of the environment is not granted anything."""
    result = identities_of(overrides={size: account("a") for size in SIZES})

    assert [identity.email for identity in result] == ["a@p.iam.gserviceaccount.com"]


def test_the_stacks_account_can_be_named_as_well() -> None:
    """The stack creates its account if one size leaves it to the stack, though another names it."""
    named = {"targets": {"cloud-tpu": {"service_account": OWN}}}

    assert identities_of(overrides={SIZES[0]: named}) == (Identity(OWN, is_created=True),)
    assert identities_of(targets=named["targets"]) == (Identity(OWN, is_created=False),)


def test_projects_of_secrets_are_resolved() -> None:
    """A short name is a secret of the environment's project, and equal secrets are one."""
    secrets = {
        "A": "x/1",
        "B": "projects/my-project-dev/secrets/x/versions/2",
        "C": "projects/other/secrets/x/versions/1",
    }

    (identity,) = identities_of(trainer__secrets=secrets)

    assert identity.secrets == (SecretName("my-project-dev", "x"), SecretName("other", "x"))


NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)


@given(NAMES, NAMES, NAMES, NAMES)
def test_no_two_environments_share_a_role(
    name: str, env: str, other_name: str, other_env: str
) -> None:
    """Ids of roles are valid and differ if the names differ, also where dashes could move between them."""
    one, other = (
        deletion_role_id(name=name, environment=env),
        deletion_role_id(name=other_name, environment=other_env),
    )

    assert (one == other) == ((name, env) == (other_name, other_env))
    assert set(one) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.")
