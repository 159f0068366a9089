"""check_mpijob.py FILE: the manifest that mpijob_test.sh lets launch/run write, against what mpi-operator's validation.go
and Kubernetes demand beyond well-formed YAML."""
import re
import sys

import yaml

environment, job = yaml.safe_load_all(open(sys.argv[1]))
assert environment["kind"] == "ConfigMap" and environment["data"] == {"NCCL_SOCKET_IFNAME": 'eth0"'}, environment
assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
spec = job["spec"]
launcher, worker = spec["mpiReplicaSpecs"]["Launcher"], spec["mpiReplicaSpecs"]["Worker"]
assert set(spec["mpiReplicaSpecs"]) == {"Launcher", "Worker"}
assert (launcher["replicas"], worker["replicas"], spec["slotsPerWorker"]) == (1, 4, 8)
assert launcher["restartPolicy"] in ("Never", "OnFailure")
assert spec["runPolicy"]["cleanPodPolicy"] in ("None", "Running", "All")
name = job["metadata"]["name"]
assert re.fullmatch("[a-z]([-a-z0-9]{0,61}[a-z0-9])?", f"{name}-worker-{worker['replicas'] - 1}"), "pods get DNS labels"

pods = [launcher["template"]["spec"], worker["template"]["spec"]]
for pod in pods:
    (container,) = pod["containers"]
    assert container["image"] == "reg.lan/plumbline:0.1" and all(isinstance(word, str) for word in container["command"])
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert container["workingDir"] in [mount["mountPath"] for mount in container["volumeMounts"]]
command = pods[0]["containers"][0]["command"]
assert command[:3] == ["mpirun", "--allow-run-as-root", "-np"] and command[3] == "32" and "-H" not in command, command
assert command[-5:] == ["NCCL_SOCKET_IFNAME", "bench_resnet50", '$$(x) "\\', "a\tb", "@IMAGE@"], command
assert pods[0]["containers"][0]["envFrom"][0]["configMapRef"]["name"] == environment["metadata"]["name"]
assert pods[1]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 8}}
affinity = pods[1]["affinity"]
(term,) = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
assert term["matchExpressions"][0]["values"] == ["n1", "n2", "n3", "n4"]
(apart,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
assert apart["labelSelector"]["matchLabels"] == worker["template"]["metadata"]["labels"]
