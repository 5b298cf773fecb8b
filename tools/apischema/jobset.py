"""The JSON Schema of a JobSet: the envelope from a table, jobs and pods from the models of `pod.py`.

The envelope is that of JobSet v0.12.0, https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/api/jobset/v1alpha2/jobset_types.go,
without `status`, which its controller writes. That release is built on Kubernetes 1.36, hence the pin of `kubernetes`.
What older releases lack is in `compiler/tpucfg/targets/gke/rules.py`.
"""

from apischema import Schema, closed, pod
from apischema.tables import Field, messages

VERSION = "v0.12.0"

ENVELOPE = {
    "Coordinator": (
        Field("jobIndex", "integer", "Index of the job that holds the coordinator pod."),
        Field("podIndex", "integer", "Completion index of the coordinator pod in its job."),
        Field(
            "replicatedJob",
            "string",
            "Name of the replicated job that holds the coordinator pod.",
            required=True,
        ),
    ),
    "DependsOn": (
        Field("name", "string", "Name of an earlier replicated job.", required=True),
        Field(
            "status",
            "string",
            "The state that it must reach first.",
            "Complete Ready",
            required=True,
        ),
    ),
    "FailurePolicy": (
        Field(
            "maxRestarts", "integer", "How often the whole set is started again before it fails."
        ),
        Field(
            "restartStrategy",
            "string",
            "How the jobs are recreated at a restart.",
            "BlockingRecreate InPlaceRestart Recreate",
        ),
        Field(
            "rules",
            "[FailurePolicyRule]",
            "What to do on which failure; the first rule that matches decides.",
        ),
    ),
    "FailurePolicyRule": (
        Field(
            "action",
            "string",
            "What to do when the rule matches.",
            "FailJobSet RestartJob RestartJobAndIgnoreMaxRestarts RestartJobSet RestartJobSetAndIgnoreMaxRestarts",
            required=True,
        ),
        # The Go type requires it, and JobSet's webhook adds it where it is missing: failurePolicyRule0 and so on.
        Field("name", "string", "Name of the rule."),
        Field(
            "onJobFailureMessagePatterns",
            "[string]",
            "Patterns (RE2), one of which the job's message must match.",
        ),
        Field(
            "onJobFailureReasons", "[string]", "Reasons, one of which the job must have failed for."
        ),
        Field(
            "targetReplicatedJobs",
            "[string]",
            "The replicated jobs that the rule is for; none means all.",
        ),
    ),
    "JobSetSpec": (
        Field(
            "coordinator",
            "Coordinator",
            "The pod that is announced to all others as the coordinator.",
        ),
        Field("failurePolicy", "FailurePolicy", "When the set has failed."),
        Field("managedBy", "string", "The controller that manages this set."),
        Field("network", "Network", "How the pods reach one another by name."),
        # The API accepts a set without jobs; a config that starts nothing is a mistake.
        Field("replicatedJobs", "[ReplicatedJob]", "The jobs that form the set.", required=True),
        Field(
            "startupPolicy",
            "StartupPolicy",
            "Deprecated: In what order the jobs start; use dependsOn.",
        ),
        Field("successPolicy", "JobSetSuccessPolicy", "When the set has succeeded."),
        Field(
            "suspend", "boolean", "Suspends all running jobs of the set; Kueue starts it suspended."
        ),
        Field(
            "ttlSecondsAfterFinished",
            "integer",
            "Seconds after its end at which the set is deleted.",
        ),
        Field(
            "volumeClaimPolicies",
            "[VolumeClaimPolicy]",
            "Persistent volumes that the set creates and its jobs share.",
        ),
    ),
    # A job has its own SuccessPolicy.
    "JobSetSuccessPolicy": (
        Field(
            "operator",
            "string",
            "Whether all or any of the jobs must succeed.",
            "All Any",
            required=True,
        ),
        Field(
            "targetReplicatedJobs", "[string]", "The replicated jobs that count; none means all."
        ),
    ),
    "Network": (
        Field("enableDNSHostnames", "boolean", "Lets pods be reached by their host names."),
        Field(
            "publishNotReadyAddresses",
            "boolean",
            "Publishes the pods' names before the pods are ready.",
        ),
        Field("subdomain", "string", "The pods' subdomain; the set's name unless given."),
    ),
    "ReplicatedJob": (
        Field("dependsOn", "[DependsOn]", "Earlier replicated jobs that this one waits for."),
        Field("groupName", "string", "Name of the group that this replicated job belongs to."),
        Field("name", "string", "Name of the entry, a part of its jobs' names.", required=True),
        Field("replicas", "integer", "Number of jobs created from the template."),
        Field("template", "JobTemplateSpec", "The job.", required=True),
    ),
    "StartupPolicy": (
        Field(
            "startupPolicyOrder",
            "string",
            "The order in which the jobs start.",
            "AnyOrder InOrder",
            required=True,
        ),
    ),
    "VolumeClaimPolicy": (
        Field(
            "retentionPolicy",
            "VolumeRetentionPolicy",
            "What happens to the volumes when the set is deleted.",
        ),
        Field(
            "templates", "[PersistentVolumeClaim]", "The claims, whose names the containers mount."
        ),
    ),
    "VolumeRetentionPolicy": (
        Field(
            "whenDeleted", "string", "Whether the claims are deleted with the set.", "Delete Retain"
        ),
    ),
}


def schema() -> Schema:
    """Return the schema of a JobSet with all messages below it as `$defs`."""
    pods = pod.own_metadata() | pod.reachable("V1JobTemplateSpec", "V1PersistentVolumeClaim")
    return {
        "$comment": f"Generated by tools/api_schemas.py from {pod.SOURCE} and the envelope of JobSet {VERSION}.",
        "$defs": pods | messages(ENVELOPE),
        "title": "GKE: a set of jobs (jobset.x-k8s.io/v1alpha2 JobSet)",
        **closed(
            {
                "apiVersion": {
                    "const": "jobset.x-k8s.io/v1alpha2",
                    "description": "The API of the set.",
                },
                "kind": {"const": "JobSet", "description": "The kind of the object."},
                # Every rendered config has a name, which `kubectl apply` needs; `kubectl create` generates one.
                "metadata": {
                    "$ref": "#/$defs/OwnObjectMeta",
                    "description": "Name, namespace, labels and annotations of the set.",
                    "anyOf": [{"required": ["name"]}, {"required": ["generateName"]}],
                },
                "spec": {"$ref": "#/$defs/JobSetSpec", "description": "What the set runs."},
            },
            ["apiVersion", "kind", "metadata", "spec"],
        ),
    }
