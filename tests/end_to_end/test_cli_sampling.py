"""`parley run` with enrichments, a draw along the dataflow and a search: workers draw what submit drew."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from results.reading import visible_records
from results.store import open_store
from tests.support.cluster import PARLEY

RECIPE = """
name: chains
model: {provider: offline}
tools:
  registry:
    - {type: file, path: tools.json, engine: sim}
    - type: inline
      namespace: help
      engine: pages
      tools: [{name: search, parameters: {properties: {query: {type: string}}}, metadata: {always_on: true}}]
  engines:
    sim: {type: lm, lm_config: {type: offline}}
    pages: {type: search/file, path: pages.jsonl}
  enrichments: [{type: dataflow, min_score: 0.5}]
  sample: {type: tc/chain, k: 3}
"""
STEPS = ["customer", "order", "parcel", "invoice"]


def tools() -> list[dict[str, Any]]:
    """Return tools of which each takes what the one before it gives."""

    def an_object(name: str) -> dict[str, Any]:
        return {"type": "object", "properties": {f"{name}_id": {"type": "string"}}}

    chain = zip(["name", *STEPS], STEPS, strict=False)
    return [
        {"name": f"find_{after}", "parameters": an_object(before), "output_parameters": an_object(after)}
        for before, after in chain
    ]


def test_d80_every_conversation_is_offered_a_chain_and_what_is_always_on(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "tools.json").write_text(json.dumps(tools()))
    (tmp_path / "pages.jsonl").write_text('{"id": "returns", "text": "Returns are free"}\n')
    (tmp_path / "jobs.jsonl").write_text("\n".join(json.dumps({"prompt": f"Do {number}"}) for number in range(12)))
    environment = {**os.environ, "PARLEY_CACHE_DIR": str(tmp_path / "cache")}
    outcome = subprocess.run(
        [*PARLEY, "run", str(tmp_path / "recipe.yaml"), "--results", str(tmp_path / "results"), "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    run_id = json.loads(outcome.stdout.splitlines()[-1])["run_id"]
    offered = set()
    for record in visible_records(open_store(str(tmp_path / "results")), run_id):
        *chain, search = [tool["function"]["name"] for tool in record["tools"]]
        assert search == "help__search"
        offered.add(tuple(name.removeprefix("default__find_") for name in chain))
    assert offered == {("customer", "order", "parcel"), ("order", "parcel", "invoice")}
