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


def check(documents):
    services = [one["metadata"]["name"] for one in documents if one["kind"] == "Service"]
    for document in documents:
        if document["kind"] == "MPIJob":
            mpi_job(document)
            continue
        by_schema(document)
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


MISTAKES = {
    "Job": [
        lambda job: job["spec"].update(completions="four"),
        lambda job: job["spec"].update(backofLimit=0),
        lambda job: job["spec"].update(completions=3),
        lambda job: job["spec"].update(backoffLimit=6),
        lambda job: job["spec"]["template"]["spec"].update(subdomain="other"),
        lambda job: container(job).update(arg=["run"]),
    ],
    "Service": [lambda service: service["spec"].update(clusterIp="None")],
    "MPIJob": [
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
