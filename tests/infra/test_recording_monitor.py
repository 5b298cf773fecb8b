"""Options, providers, secrets and features of the engine, as recorded from small programs."""

import re
from pathlib import Path

import pytest
import specs

from tpucfg.infra.resources import EnvironmentResources, Resource, Unseen
from tpucfg.infra.stack_program import ProgramError, run_under_mocks
from tpucfg.spec.parse import load_project

BUCKET = "pulumi_gcp.storage.Bucket('b', project='p', location='EU', opts=pulumi.ResourceOptions({options}))"


def declared(folder: Path, program: str) -> EnvironmentResources:
    """Return what a program of a few lines declares."""
    project, _ = load_project(specs.write(folder, specs.spec()))
    assert project
    main = folder / "program" / "__main__.py"
    main.parent.mkdir()
    main.write_text(f"import pulumi, pulumi_gcp\n{program}\n")
    return run_under_mocks(
        main.parent, environment=project.environments["dev"], project="tpucfg", config={}
    )


def only(environment: EnvironmentResources) -> Resource:
    """Return the only resource."""
    (resource,) = environment.resources
    return resource


@pytest.mark.parametrize(
    ("options", "recorded"),
    [
        ("ignore_changes=['labels', 'cors']", {"ignoreChanges": ["cors", "labels"]}),
        ("import_='existing'", {"importId": "existing"}),
        ("delete_before_replace=False", {"deleteBeforeReplace": False}),
        ("deleted_with=pulumi.ComponentResource('a:b:C', 'other')", {"deletedWith": "other"}),
        ("replace_on_changes=['labels']", {"replaceOnChanges": ["labels"]}),
        ("plugin_download_url='https://x.example'", {"pluginDownloadURL": "https://x.example"}),
        ("version='1.2.3'", {"version": "1.2.3"}),
        ("aliases=[pulumi.Alias(name='old')]", {"aliases": [{"name": "old"}]}),
        ("provider=pulumi_gcp.Provider('mine', project='p')", {"provider": "mine"}),
        ("parent=pulumi.ComponentResource('a:b:C', 'c')", {"parent": "a:b:C"}),
        ("hooks=pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook('on-refusal', print)])", {}),
        (
            "hooks=pulumi.ResourceHookBinding(after_delete=[pulumi.ResourceHook('h', print)])",
            {"hooks": ["after_delete: h"]},
        ),
        ("depends_on=[], custom_timeouts=pulumi.CustomTimeouts(create='1h')", {}),
    ],
)
def test_options_are_recorded(tmp_path: Path, options: str, recorded: dict[str, object]) -> None:
    """Each option that changes an update is recorded under Pulumi's name, and no other one is."""
    resource = only(declared(tmp_path, BUCKET.format(options=options)))

    # The library itself marks these.
    assert {
        key: value for key, value in resource.options.items() if key != "additionalSecretOutputs"
    } == recorded


def test_parents_are_the_whole_chain(tmp_path: Path) -> None:
    """Types of all parents identify a resource, so that two with equal types and names differ."""
    program = """
outer = pulumi.ComponentResource("a:b:Outer", "o", opts=pulumi.ResourceOptions(aliases=[pulumi.Alias(name="before")]))
inner = pulumi.ComponentResource("a:b:Inner", "i", opts=pulumi.ResourceOptions(parent=outer))
for parent in (outer, inner):
    pulumi_gcp.storage.Bucket("b", project="p", location="EU", opts=pulumi.ResourceOptions(parent=parent))
"""
    resources = declared(tmp_path, program).resources

    assert sorted(resource.key[0] for resource in resources) == ["a:b:Outer", "a:b:Outer$a:b:Inner"]
    assert all(resource.options["parentAliases"] == [{"name": "before"}] for resource in resources)


def test_equal_identities_are_an_error(tmp_path: Path) -> None:
    """The engine refuses two resources with one URN, and a comparison would show only one of them."""
    with pytest.raises(ProgramError, match=r"declares storage\.Bucket b twice"):
        declared(tmp_path, "\n".join([BUCKET.format(options="")] * 2))


def test_secrets_stay_in_the_program(tmp_path: Path) -> None:
    """No value of a wrapped input leaves the program, also none inside a list; a digest shows that one changes."""
    program = """
secret = pulumi.Output.secret
pulumi_gcp.storage.Bucket("b", project="p", location=secret("EU"), labels={"a": secret("hidden"), "b": "c"})
pulumi.export("token", secret("hidden"))
pulumi.export("deep", {"token": secret("hidden")})
pulumi.export("plain", 1)
"""
    environment = declared(tmp_path, program)
    resource = only(environment)

    assert sorted(resource.secrets) == ["labels", "location"]
    assert all(re.fullmatch("[0-9a-f]{12}", digest) for digest in resource.secrets.values())
    assert resource.inputs == {
        "project": "p",
        "location": "[secret]",
        "labels": "[secret]",
        **_rest(resource),
    }
    assert environment.outputs == {"token": "[secret]", "deep": "[secret]", "plain": 1}


def _rest(resource: Resource) -> dict[str, object]:
    return {
        key: value
        for key, value in resource.inputs.items()
        if key not in {"project", "location", "labels"}
    }


def test_grants_are_never_secret(tmp_path: Path) -> None:
    """Role, member and object of a grant are shown, whatever the program wraps."""
    wrapped = ", ".join(f"{key}=pulumi.Output.secret({value!r})" for key, value in GRANT.items())
    resource = only(declared(tmp_path, f"pulumi_gcp.projects.IAMMember('a', {wrapped})"))

    assert resource.secrets == {}
    assert resource.inputs == GRANT


GRANT = {"project": "p", "role": "roles/owner", "member": "user:a@b.example"}


@pytest.mark.parametrize(
    ("program", "unseen"),
    [
        (
            "pulumi.runtime.register_resource_transform(lambda args: None)",
            Unseen("transform", "all resources"),
        ),
        (
            "pulumi.runtime.register_invoke_transform(lambda args: None)",
            Unseen("transform", "all look-ups"),
        ),
        ("pulumi.StackReference('o/p/s')", Unseen("read", "pulumi:pulumi:StackReference o/p/s")),
        ("pulumi.ComponentResource('o:p:C', 'c', {}, None, True)", Unseen("component", "o:p:C c")),
        (
            "pulumi_gcp.storage.Bucket.get('b', 'id')",
            Unseen("read", "gcp:storage/bucket:Bucket b"),
        ),
        (
            "pulumi_gcp.storage.get_buckets(project='p')",
            Unseen("call", "gcp:storage/getBuckets:getBuckets"),
        ),
    ],
)
def test_features_of_the_engine_are_recorded(tmp_path: Path, program: str, unseen: Unseen) -> None:
    """Features that only an engine can carry out are listed by kind and name."""
    assert declared(tmp_path, program).unseen == (unseen,)


def test_look_up_of_a_project_is_known(tmp_path: Path) -> None:
    """The number of a project is shown as a placeholder, so its look-up is not listed."""
    assert declared(tmp_path, "pulumi_gcp.organizations.get_project(project_id='p')").unseen == ()


def test_providers_are_recorded_with_their_inputs(tmp_path: Path) -> None:
    """A provider is no resource, but its inputs and secrets are compared."""
    environment = declared(
        tmp_path, "pulumi_gcp.Provider('mine', project='p', access_token='t', region='r')"
    )
    (provider,) = environment.providers

    assert environment.resources == ()
    assert (provider.name, [*provider.secrets]) == ("mine", ["accessToken"])
    assert provider.inputs["accessToken"] == "[secret]"
