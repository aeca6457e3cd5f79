"""`tc/random`: tools drawn by a job's seed, shared out among namespaces (rules D81, D83)."""

import random
from collections.abc import Sequence

from engines.chance import derive_seed
from engines.configuration import SampleSettings
from engines.samplers.errors import SamplingError
from engines.samplers.pool import by_namespace, pool
from engines.samplers.prepare import Draw, Index
from engines.samplers.shares import places, shares
from engines.tool import Tool


def prepare(tools: Sequence[Tool], settings: SampleSettings, _index: Index) -> Draw:
    """Draw `k` tools: a `namespace` is a hard filter, before `namespace_weights`, before `strategy`."""
    available = by_namespace(pool(tools, settings.namespace))
    sizes = {namespace: len(own) for namespace, own in available.items()}
    share_of = shares(sizes, settings.namespace_weights, settings.strategy)
    drawable = sum(size for namespace, size in sizes.items() if share_of[namespace] > 0)

    def draw(seed: int) -> list[Tool]:
        if settings.k > drawable:
            where = "the registry" if settings.namespace is None else f"namespace {settings.namespace!r}"
            message = f"{settings.k} tools asked for, {drawable} in {where}; lower k"
            raise SamplingError(message, requested=settings.k, tools=pool(tools, settings.namespace))
        chance = random.Random(derive_seed("tc/random", seed))
        drawn = [
            tool
            for namespace, number in places(settings.k, share_of, sizes, chance).items()
            for tool in chance.sample(available[namespace], number)
        ]
        chance.shuffle(drawn)
        return drawn

    return draw
