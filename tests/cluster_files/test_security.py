"""Rules S12, S13, S21 and S22, line by line, and the times that must fit each other (F28, F29)."""

import ipaddress
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.cluster_files.cluster_files import JSONObject, pods
from tests.cluster_files.conftest import SECRETS
from workers.settings import WorkerSettings

OURS = {"worker-conversations", "worker-namespace", "feeder", "flower"}
PODS = ["workers-conversations", "workers-namespace", "feeder", "flower"]
CHOWN_ONLY = "store-folder"  # runs for a moment, as root, without a network, to give a fresh volume to its user


def each(services: dict[str, JSONObject]) -> list[tuple[str, JSONObject]]:
    assert set(services) >= OURS | {"redis", "store"}
    return list(services.items())


# Docker Compose


def test_sec_s21_compose_root_filesystems_are_read_only(services: dict[str, JSONObject]) -> None:
    assert [name for name, service in each(services) if service.get("read_only") is not True] == []


def test_sec_s21_compose_drops_every_capability(services: dict[str, JSONObject]) -> None:
    assert [name for name, service in each(services) if service.get("cap_drop") != ["ALL"]] == []
    assert [(name, service["cap_add"]) for name, service in each(services) if "cap_add" in service] == [
        (CHOWN_ONLY, ["CHOWN"])
    ]


def test_sec_s21_compose_gives_no_new_privileges(services: dict[str, JSONObject]) -> None:
    for name, service in each(services):
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service, name
        assert not {"pid", "ipc", "userns_mode", "cgroup", "devices"} & set(service), name


def test_sec_s21_compose_users_are_not_root(services: dict[str, JSONObject]) -> None:
    users = {name: service["user"].split(":") for name, service in each(services) if name != CHOWN_ONLY}

    assert all(int(number) > 0 for pair in users.values() for number in pair)
    assert services[CHOWN_ONLY]["network_mode"] == "none"


def test_sec_s21_compose_mounts_no_docker_socket_and_no_folder_of_the_host_writable(
    services: dict[str, JSONObject],
) -> None:
    for name, service in each(services):
        for volume in service.get("volumes", []):
            assert "docker.sock" not in volume, name
            assert volume.endswith(":ro") or not volume.startswith((".", "/", "~")), (name, volume)


def test_sec_s21_compose_ports_are_on_this_machine_only_and_only_flower_has_one(
    services: dict[str, JSONObject],
) -> None:
    assert {name: service["ports"] for name, service in each(services) if "ports" in service} == {
        "flower": ["127.0.0.1:5555:5555"]
    }
    assert not [name for name, service in each(services) if service.get("network_mode") == "host"]


def test_sec_s21_compose_limits_memory_processes_and_tmp(services: dict[str, JSONObject]) -> None:
    for name, service in each(services):
        assert service["deploy"]["resources"]["limits"]["memory"], name
        assert service["pids_limit"], name
        for mount in service.get("tmpfs", []):
            assert re.search(r"size=\d+m\b", mount), name
            assert {"noexec", "nosuid", "nodev"} <= set(re.split("[:,]", mount)), name


def test_sec_s14_s21_redis_and_the_store_have_no_way_out_and_no_port(
    checkout: Path, services: dict[str, JSONObject]
) -> None:
    networks = yaml.safe_load((checkout / "compose.yaml").read_text())["networks"]

    assert networks["inside"] == {"internal": True}
    for name in ("redis", "store", "feeder"):
        assert services[name]["networks"] == ["inside"], name
        assert "ports" not in services[name], name


def test_sec_s11_compose_holds_no_secret(checkout: Path) -> None:
    text = (checkout / "compose.yaml").read_text()
    secrets = re.findall(r"\$\{(\w*(?:PASSWORD|SECRET|ACCESS_KEY|SECRET_KEY))\b([^}]*)\}", text)

    assert {name for name, _ in secrets} == set(SECRETS) - {"FLOWER_LOGIN"}
    assert [name for name, rest in secrets if not rest.startswith(":?")] == [], "a secret has no default"


def test_sec_s11_the_secrets_of_compose_are_made_up_anew(checkout: Path) -> None:
    text = (checkout / "scripts" / "cluster_env.sh").read_text()

    assert {name for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE) if value == "$(secret)"} == set(
        SECRETS
    ) - {"FLOWER_LOGIN"}


def test_every_compose_service_that_stays_tells_whether_it_is_well(services: dict[str, JSONObject]) -> None:
    staying = {name for name, service in each(services) if service["restart"] != "no"}

    assert staying == (OURS - {"feeder"}) | {"redis", "store"}
    for name in staying:
        assert services[name]["healthcheck"]["test"][0] == "CMD", name


def test_signals_reach_the_process(checkout: Path, services: dict[str, JSONObject]) -> None:
    assert [name for name, service in each(services) if service.get("init") is not True] == []
    assert all(isinstance(services[name]["command"], list) for name in OURS)
    dockerfile = (checkout / "Dockerfile").read_text()
    assert re.search(r'^CMD \["celery"', dockerfile, re.MULTILINE)
    assert not re.search(r"^(CMD|ENTRYPOINT) [^\[]", dockerfile, re.MULTILINE)


# Kubernetes


@pytest.fixture(scope="session")
def specs(objects: list[JSONObject]) -> dict[str, JSONObject]:
    found = dict(pods(objects))
    assert sorted(found) == sorted(PODS)
    return found


@pytest.mark.parametrize("name", PODS)
def test_sec_s21_kubernetes_pods_are_restricted(specs: dict[str, JSONObject], name: str) -> None:
    pod = specs[name]

    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert container["resources"]["requests"]["memory"] == container["resources"]["limits"]["memory"]
    for volume in pod["volumes"]:
        assert set(volume) == {"name", "emptyDir"}, "nothing of the node"
        assert volume["emptyDir"]["sizeLimit"]


def test_sec_s21_the_namespace_refuses_pods_that_are_not_restricted(objects: list[JSONObject]) -> None:
    (namespace,) = [thing for thing in objects if thing["kind"] == "Namespace"]

    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_sec_s21_the_service_account_gets_no_token(objects: list[JSONObject]) -> None:
    (account,) = [thing for thing in objects if thing["kind"] == "ServiceAccount"]

    assert account["automountServiceAccountToken"] is False
    assert not [thing for thing in objects if thing["kind"] in {"Role", "ClusterRole", "RoleBinding", "Secret"}]


@pytest.mark.parametrize("name", PODS)
def test_sec_s11_secrets_come_by_reference(specs: dict[str, JSONObject], name: str) -> None:
    for container in specs[name]["containers"]:
        secret = [one for one in container["env"] if re.search("BROKER|KEY|SECRET|AUTH", one["name"])]
        assert secret
        assert [one["name"] for one in secret if "secretKeyRef" not in one.get("valueFrom", {})] == []


def _policies(objects: list[JSONObject]) -> dict[str, JSONObject]:
    return {thing["metadata"]["name"]: thing["spec"] for thing in objects if thing["kind"] == "NetworkPolicy"}


def test_sec_s21_by_default_nothing_goes_in_or_out(objects: list[JSONObject]) -> None:
    assert _policies(objects)["default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "10.1.2.3", "172.16.0.1", "192.168.1.1", "127.0.0.1", "100.64.0.1"]
)
def test_sec_s21_the_way_out_leads_to_no_private_address(objects: list[JSONObject], address: str) -> None:
    blocks = [
        peer["ipBlock"]
        for policy in _policies(objects).values()
        for rule in policy.get("egress", [])
        for peer in rule["to"]
        if "ipBlock" in peer
    ]

    assert blocks
    for block in blocks:
        inside = ipaddress.ip_address(address) in ipaddress.ip_network(block["cidr"])
        excepted = any(ipaddress.ip_address(address) in ipaddress.ip_network(net) for net in block["except"])
        assert not inside or excepted


def test_sec_s21_every_way_out_names_its_ports(objects: list[JSONObject]) -> None:
    for name, policy in _policies(objects).items():
        for rule in [*policy.get("egress", []), *policy.get("ingress", [])]:
            assert rule["ports"], name
            assert rule.get("to") or rule.get("from"), name


def test_sec_s12_flower_is_let_in_to_by_nobody_without_a_label(objects: list[JSONObject]) -> None:
    (rule,) = _policies(objects)["flower"]["ingress"]

    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"parley/may-see-flower": "true"}}}]
    assert [name for name, policy in _policies(objects).items() if "ingress" in policy] == ["flower"]


@pytest.mark.parametrize("place", ["compose", "kubernetes"])
def test_sec_s12_flower_is_read_only_and_wants_a_password(
    services: dict[str, JSONObject], specs: dict[str, JSONObject], place: str
) -> None:
    if place == "compose":
        command, variables = services["flower"]["command"], set(services["flower"]["environment"])
    else:
        container = specs["flower"]["containers"][0]
        command, variables = container["command"], {one["name"] for one in container["env"]}

    assert "--read-only" in command
    assert not [word for word in command if "auth" in word or "cookie" in word], (
        "a command line is no place for secrets"
    )
    assert {"FLOWER_BASIC_AUTH", "FLOWER_COOKIE_SECRET"} <= variables
    assert "FLOWER_UNAUTHENTICATED_API" not in variables


def test_sec_s12_flower_is_new_enough(checkout: Path) -> None:
    (requirement,) = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "flower"
    ]

    assert not Requirement(requirement).specifier.contains("2.1.99")


def test_sec_s13_remote_control_is_off_everywhere(checkout: Path, services: dict[str, JSONObject]) -> None:
    for name in OURS - {"feeder"}:
        assert services[name]["environment"]["PARLEY_REMOTE_CONTROL"] == "false", name
    kustomization = yaml.safe_load((checkout / "k8s" / "base" / "kustomization.yaml").read_text())
    settings = {one["name"]: one["literals"] for one in kustomization["configMapGenerator"]}
    assert "PARLEY_REMOTE_CONTROL=false" in settings["parley-settings"]


def test_sec_s13_only_an_operator_may_publish_commands(checkout: Path) -> None:
    users = [line for line in (checkout / "k8s" / "redis.acl").read_text().splitlines() if not line.endswith(" off")]

    assert len(users) == 3
    for user in users:
        words = user.split()
        assert {"resetchannels", "-@all", "-@dangerous"} <= set(words), user
        assert words.index("-@dangerous") == len(words) - 1, f"the last word counts: {user}"
        assert not {"~*", "&*", "allkeys", "allchannels", "nopass", "+@admin", "+@all"} & set(words), user
        assert not [word for word in words if "pidbox" in word], user


# Times


def _seconds(duration: str) -> int:
    found = re.fullmatch(r"(\d+)s", duration)
    assert found
    return int(found[1])


def test_f28_a_worker_is_not_killed_before_it_has_drained(
    services: dict[str, JSONObject], specs: dict[str, JSONObject]
) -> None:
    drain_seconds = WorkerSettings.model_fields["drain_seconds"].default
    graces = [_seconds(services[name]["stop_grace_period"]) for name in ("worker-conversations", "worker-namespace")]
    graces += [specs[name]["terminationGracePeriodSeconds"] for name in ("workers-conversations", "workers-namespace")]

    assert drain_seconds <= 25, "the bound of F28"
    assert all(grace >= max(30, drain_seconds + 10) for grace in graces)


@pytest.mark.parametrize("name", ["workers-conversations", "workers-namespace"])
def test_a_worker_that_only_starts_slowly_is_not_killed(specs: dict[str, JSONObject], name: str) -> None:
    startup = specs[name]["containers"][0]["startupProbe"]

    assert startup["periodSeconds"] * startup["failureThreshold"] >= 120


def test_the_feeder_is_not_repeated_when_another_try_would_end_the_same_way(objects: list[JSONObject]) -> None:
    (job,) = [thing for thing in objects if thing["kind"] == "Job"]
    rules: list[dict[str, Any]] = job["spec"]["podFailurePolicy"]["rules"]

    assert rules[0]["action"] == "FailJob"
    assert rules[0]["onExitCodes"]["values"] == [2, 3, 4]
    assert {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]} in rules


# The image


@pytest.fixture(scope="session", params=["requirements.lock", "requirements-build.lock"])
def lock(checkout: Path, request: pytest.FixtureRequest) -> str:
    return (checkout / str(request.param)).read_text()


def _packages(lock: str) -> dict[str, str]:
    pinned = re.findall(r"^([\w.-]+)==([^ ;\\]+)", lock, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pinned}


def test_sec_s22_the_lock_pins_everything_by_hash_and_names_no_registry(lock: str) -> None:
    entries = [entry for entry in re.split(r"(?<!\\)\n", lock) if entry and not entry.startswith("#")]

    assert [entry for entry in entries if not re.match(r"[\w.-]+==", entry) or "--hash=sha256:" not in entry] == []
    assert "://" not in lock
    assert "--index" not in lock


def test_sec_s22_the_lock_fits_pyproject(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    pinned = _packages((checkout / "requirements.lock").read_text())
    wanted = [Requirement(one) for one in [*project["dependencies"], *project["optional-dependencies"]["flower"]]]

    missing = [str(one) for one in wanted if canonicalize_name(one.name) not in pinned]
    assert missing == [], "make lock"
    wrong = [str(one) for one in wanted if not one.specifier.contains(pinned[canonicalize_name(one.name)])]
    assert wrong == [], "make lock"


def test_sec_s22_the_image_installs_nothing_that_is_not_locked(checkout: Path) -> None:
    dockerfile = (checkout / "Dockerfile").read_text()
    installs = re.findall(r"pip install[^&\n]*", dockerfile)

    assert installs
    assert [one for one in installs if "--require-hashes" not in one and "--no-index" not in one] == []
    assert not re.search(r"curl|wget|apt-get|git clone", dockerfile)


def test_sec_s21_the_image_is_not_root(checkout: Path) -> None:
    users = re.findall(r"^USER (\d+):(\d+)$", (checkout / "Dockerfile").read_text(), re.MULTILINE)

    assert users
    assert all(int(number) > 0 for number in users[-1])


def test_the_image_takes_only_what_the_dockerfile_copies(checkout: Path) -> None:
    lines = (checkout / ".dockerignore").read_text().splitlines()
    let_in = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (checkout / "Dockerfile").read_text(), re.MULTILINE)

    assert "*" in lines
    assert let_in == {name for names in copied for name in names.split()}
