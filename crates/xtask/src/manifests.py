"""Checks the manifests in the folders that are given: schemas of Kubernetes, and what must fit together.

The schemas are those of the package kubernetes-validate, strict: an unknown field is an error. It has none for MPIJob,
whose pods are checked as pods, and whose own fields against the list below (v2beta1 of the MPI Operator, mpi-operator 0.6).

Each check is shown to be able to fail: the same manifests with one mistake each must be refused.
"""

import copy
import sys
from pathlib import Path

import kubernetes_validate
import yaml

MPI_JOB = {
    "": {"apiVersion", "kind", "metadata", "spec"},
    "spec": {
        "slotsPerWorker", "runLauncherAsWorker", "mpiReplicaSpecs", "launcherCreationPolicy", "mpiImplementation",
        "sshAuthMountPath", "runPolicy",
    },
    "spec.runPolicy": {
        "cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit", "schedulingPolicy", "suspend",
        "managedBy",
    },
    "spec.mpiReplicaSpecs": {"Launcher", "Worker"},
    "spec.mpiReplicaSpecs.Launcher": {"replicas", "template", "restartPolicy"},
    "spec.mpiReplicaSpecs.Worker": {"replicas", "template", "restartPolicy"},
}
MPI_JOB_VALUES = {
    "spec.mpiImplementation": {"OpenMPI", "Intel", "MPICH"},
    "spec.launcherCreationPolicy": {"AtStartup", "WaitForWorkersReady"},
    "spec.runPolicy.cleanPodPolicy": {"None", "Running", "All"},
}


class Mistake(Exception):
    pass


def at(document, path):
    for name in filter(None, path.split(".")):
        document = document.get(name) if isinstance(document, dict) else None
    return document


def by_schema(document):
    try:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    except Exception as error:  # The package has an exception of its own for each reason.
        raise Mistake(f"{document.get('kind')}: {getattr(error, 'message', error)}") from error


def restricted(pod):
    """The profile "restricted" of the Pod Security Standards, and requests, a limit of memory and a read-only root.

    Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
    """
    of_pod = pod.get("securityContext", {})
    if pod.get("hostNetwork") or pod.get("hostPID") or pod.get("hostIPC"):
        raise Mistake("a pod uses a namespace of its host")
    kinds = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
    for volume in pod.get("volumes", []):
        if not set(volume) - {"name"} <= kinds:
            raise Mistake(f"the volume {volume['name']} is of a kind that `restricted` does not allow")
    for one in pod.get("initContainers", []) + pod["containers"]:
        own = one.get("securityContext", {})
        wanted = {
            "runAsNonRoot": (True,),
            "seccompProfile": ({"type": "RuntimeDefault"},),
            "allowPrivilegeEscalation": (False,),
            "readOnlyRootFilesystem": (True,),
            "privileged": (None, False),
        }
        for name, values in wanted.items():
            if own.get(name, of_pod.get(name)) not in values:
                raise Mistake(f"the container {one['name']} does not set {name} to {values[-1]}")
        if not own.get("runAsUser", of_pod.get("runAsUser")):
            raise Mistake(f"the container {one['name']} runs as root, or as the user of its image")
        capabilities = own.get("capabilities", {})
        if capabilities.get("drop") != ["ALL"] or set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
            raise Mistake(f"the container {one['name']} does not drop all capabilities")
        resources = one.get("resources", {})
        if not {"cpu", "memory"} <= set(resources.get("requests", {})) or "memory" not in resources.get("limits", {}):
            raise Mistake(f"the container {one['name']} has no requests, or no limit of memory")


def mpi_job(document):
    for path, known in MPI_JOB.items():
        unknown = set(at(document, path) or {}) - known
        if unknown:
            raise Mistake(f"MPIJob: {path or 'the document'} has no field {sorted(unknown)}")
    for path, known in MPI_JOB_VALUES.items():
        value = at(document, path)
        if value is not None and value not in known:
            raise Mistake(f"MPIJob: {path} is `{value}`, and must be one of {sorted(known)}")
    for role in ("Launcher", "Worker"):
        template = at(document, f"spec.mpiReplicaSpecs.{role}.template")
        if not template:
            raise Mistake(f"MPIJob: there is no {role}")
        by_schema({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, **template})
        restricted(template["spec"])
    if not at(document, "spec.runPolicy.activeDeadlineSeconds"):
        raise Mistake("MPIJob: there is no activeDeadlineSeconds")
    command = at(document, "spec.mpiReplicaSpecs.Launcher.template")["spec"]["containers"][0]["command"]
    workers = at(document, "spec.mpiReplicaSpecs.Worker.replicas") * at(document, "spec.slotsPerWorker")
    if command[command.index("-n") + 1] != str(workers):
        raise Mistake(f"MPIJob: mpirun starts {command[command.index('-n') + 1]} ranks on {workers} slots")


def indexed_job(document, services):
    spec = document["spec"]
    pod = spec["template"]["spec"]
    env = {one["name"]: one.get("value") for one in pod["containers"][0].get("env", [])}
    if not spec["completions"] == spec["parallelism"] == int(env["WORLD_SIZE"]):
        raise Mistake("Job: completions, parallelism and WORLD_SIZE differ: a rank would be missing")
    first = f"{document['metadata']['name']}-0.{pod.get('subdomain')}"
    if env["MASTER_ADDR"] != first or pod.get("subdomain") not in services:
        raise Mistake(f"Job: MASTER_ADDR is {env['MASTER_ADDR']}, and pod 0 is {first} of the services {services}")
    if spec.get("backoffLimit") != 0:
        raise Mistake("Job: backoffLimit is not 0: a replaced pod would join no run")
    if not spec.get("activeDeadlineSeconds"):
        raise Mistake("Job: there is no activeDeadlineSeconds")
    restricted(pod)


def check(documents):
    services = [one["metadata"]["name"] for one in documents if one["kind"] == "Service"]
    for document in documents:
        if document["kind"] == "MPIJob":
            mpi_job(document)
            continue
        by_schema(document)
        if document["kind"] == "PersistentVolumeClaim" and document["spec"].get("accessModes") != ["ReadWriteMany"]:
            raise Mistake("PersistentVolumeClaim: pods on several nodes need the access mode ReadWriteMany")
        if document["kind"] == "Job" and document["spec"].get("completionMode") == "Indexed":
            indexed_job(document, services)


def with_change(documents, kind, change):
    changed = copy.deepcopy(documents)
    for document in changed:
        if document["kind"] == kind:
            change(document)
    return changed


def container(document):
    return document["spec"]["template"]["spec"]["containers"][0]


def pod_of(document):
    template = at(document, "spec.template") or at(document, "spec.mpiReplicaSpecs.Worker.template")
    return template["spec"]


# What the profile "restricted" refuses, in the pods of any kind.
OF_PODS = [
    lambda job: pod_of(job).pop("securityContext"),
    lambda job: pod_of(job)["securityContext"].pop("seccompProfile"),
    lambda job: pod_of(job)["securityContext"].pop("runAsNonRoot"),
    lambda job: pod_of(job)["securityContext"].update(runAsUser=0),
    lambda job: pod_of(job).update(hostNetwork=True),
    lambda job: pod_of(job)["volumes"].append({"name": "root", "hostPath": {"path": "/"}}),
    lambda job: pod_of(job)["containers"][0].pop("resources"),
    lambda job: pod_of(job)["containers"][0]["resources"].pop("limits"),
    lambda job: pod_of(job)["containers"][0].pop("securityContext"),
    lambda job: pod_of(job)["containers"][0]["securityContext"].update(privileged=True),
    lambda job: pod_of(job)["containers"][0]["securityContext"].update(allowPrivilegeEscalation=True),
    lambda job: pod_of(job)["containers"][0]["securityContext"].update(readOnlyRootFilesystem=False),
    lambda job: pod_of(job)["containers"][0]["securityContext"].update(capabilities={"drop": []}),
    lambda job: pod_of(job)["containers"][0]["securityContext"]["capabilities"].update(add=["SYS_ADMIN"]),
]

MISTAKES = {
    "PersistentVolumeClaim": [lambda claim: claim["spec"].update(accessModes=["ReadWriteOnce"])],
    "Job": [
        *OF_PODS,
        lambda job: job["spec"].pop("activeDeadlineSeconds"),
        lambda job: job["spec"].update(completions="four"),
        lambda job: job["spec"].update(backofLimit=0),
        lambda job: job["spec"].update(completions=3),
        lambda job: job["spec"].update(backoffLimit=6),
        lambda job: job["spec"]["template"]["spec"].update(subdomain="other"),
        lambda job: container(job).update(arg=["run"]),
    ],
    "Service": [lambda service: service["spec"].update(clusterIp="None")],
    "MPIJob": [
        *OF_PODS,
        lambda job: job["spec"]["runPolicy"].pop("activeDeadlineSeconds"),
        lambda job: job["spec"].update(slots=1),
        lambda job: job["spec"].update(mpiImplementation="LAM"),
        lambda job: job["spec"]["mpiReplicaSpecs"]["Worker"].update(replicas=3),
        lambda job: job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0].update(volumeMount=[]),
        lambda job: job["spec"]["mpiReplicaSpecs"].pop("Launcher"),
    ],
}


def main(folders):
    files = [path for folder in folders for path in sorted(Path(folder).glob("*.yaml"))]
    staged = 0
    for path in files:
        documents = [one for one in yaml.safe_load_all(path.read_text()) if one]
        try:
            check(documents)
        except (Mistake, KeyError, ValueError) as error:
            sys.exit(f"{path}: {error}")
        for kind in {document["kind"] for document in documents}:
            for change in MISTAKES[kind]:
                try:
                    check(with_change(documents, kind, change))
                except (Mistake, KeyError, ValueError):
                    staged += 1
                    continue
                sys.exit(f"{path}: a staged mistake of {kind} was not found")
    if not files:
        sys.exit("there are no manifests")
    print(f"{len(files)} manifests, {staged} staged mistakes found")


main(sys.argv[1:])
