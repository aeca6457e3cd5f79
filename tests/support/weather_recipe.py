"""The recipe of the cluster's tests: workload W, one local tool, a model behind HTTP."""

from pathlib import Path

from tests.support.cluster import MockModel, write_recipe

RECIPE = """
name: w
model: {{provider: openai, model: mock, base_url: "{url}", api_key: none}}
conversation: {{system: "You are a weather desk."}}
tools:
  registry:
    - type: inline
      namespace: weather
      engine: local
      tools:
        - name: get_weather
          description: The weather of a city.
          parameters:
            type: object
            properties: {{city: {{type: string}}}}
            required: [city]
  engines:
    local: {{type: local, module: tests.support.weather_functions, inline: true}}
"""


def weather_run(folder: Path, model: MockModel, count: int) -> tuple[Path, Path]:
    """Write recipe and jobs; their paths."""
    jobs = ({"id": f"job-{number}", "prompt": f"What is the weather in city {number}?"} for number in range(count))
    return write_recipe(folder, RECIPE.format(url=model.url), jobs)
