"""Every kind of sampler: one row a way to draw."""

from collections.abc import Mapping

from engines.samplers import chain, dag, fan, random
from engines.samplers.prepare import SamplerKind

SAMPLER_KINDS: Mapping[str, SamplerKind] = {
    "tc/random": SamplerKind(random.prepare),
    "tc/chain": SamplerKind(chain.prepare, ("dataflow", "out")),
    "tc/fan_out": SamplerKind(fan.prepare_fan_out, ("dataflow", "out")),
    "tc/fan_in": SamplerKind(fan.prepare_fan_in, ("dataflow", "in")),
    "tc/dag": SamplerKind(dag.prepare, ("dataflow", "out")),
    "tc/neighbor": SamplerKind(fan.prepare_neighbor, ("neighbors", "near")),
}
