"""A recipe with everything it names, checked on this machine before anything is stored or sent."""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conversations.recipe_files import LoadedRecipe, load_recipe, recipe_to_json
from engines.configuration import ToolsConfiguration
from engines.errors import ConfigurationInvalid
from engines.loading import load_registry, pinned
from engines.registry import ToolRegistry
from jobs.job import JobLine
from jobs.routing import Route, permit_limits, route_of

_UNNAMEABLE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 100
