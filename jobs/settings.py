"""The settings that producers and workers share, read once from the environment (PARLEY_…)."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class BrokerSettings(BaseSettings):
    """Where the broker is and how Celery talks to it."""

    model_config = SettingsConfigDict(env_prefix="PARLEY_", extra="ignore", frozen=True)

    broker: str = Field(default="redis://127.0.0.1:6379/0", description="URL of the Redis that carries and remembers.")
    events: bool = Field(default=True, description="Send task events (Flower needs them; about 0.5 CPU-ms a job).")
    socket_timeout_seconds: float = Field(default=10.0, gt=0)
    remote_control: bool = Field(default=True, description="Answer Celery's remote control (Flower's worker pages).")
