"""The settings of a worker process, read once from the environment (PARLEY_…)."""

from pathlib import Path

from pydantic import Field

from jobs.settings import BrokerSettings


class WorkerSettings(BrokerSettings):
    """``PARLEY_BROKER`` is the only one a worker needs. Seconds everywhere."""

    lease_seconds: float = Field(default=60.0, gt=0, description="A claim lives this long after its last renewal.")
    heartbeat_seconds: float = Field(default=15.0, gt=0)
    sweep_seconds: float = Field(default=5.0, gt=0)
    message_grace_seconds: float = Field(default=10.0, gt=0, description="A message under way this long is lost.")
    drain_seconds: float = Field(default=20.0, gt=0, description="SIGTERM: time to reach the next yield.")
    teardown_seconds: float = Field(default=10.0, gt=0)
    reap_seconds: float = Field(
        default=30.0, gt=0, description="A session left on a backend is tried again after this, then twice it, …"
    )
    retry_delay_seconds: float = Field(default=10.0, ge=0, description="First delay of a job that may pass later.")
    retry_delay_cap_seconds: float = Field(default=300.0, ge=0)
    broker_patience_seconds: float = Field(default=90.0, gt=0, description="A ledger call outlasts a restart of Redis.")
    linger_seconds: float = Field(default=2.0, gt=0, description="Records wait this long for their neighbours.")
    shard_bytes: int = Field(default=16 << 20, gt=0)
    high_water_bytes: int = Field(default=128 << 20, gt=0, description="Unwritten records above this hold jobs back.")
    worker_name: str | None = Field(
        default=None, description="Begins the names of claims and shards; the host if unset."
    )
    heartbeat_file: Path | None = Field(default=None, description="Touched every few seconds while the loop runs.")
    log_level: str = "INFO"
    log_format: str = Field(default="auto", pattern="^(auto|json|text)$")
