"""What exporting a run takes: every job once, though some have several records (`--jobs 1000000` for the table's figure)."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.calibration import calibration_ms
from benchmarks.calibration import Sample
from benchmarks.children import child
from benchmarks.figure import Figure
from benchmarks.in_flight import cpu_seconds_of, on_loop
from benchmarks.options import Options
from benchmarks.process_tree import MemoryWatch, cpu_seconds
from benchmarks.servers import PARLEY
from benchmarks.workload import SYSTEM, TOOL_CALLS, question
from conversations.encoding import encode_json
from conversations.messages import assistant, system, tool_call, tool_message, user
from results.async_store import AsyncStore
from results.exports.kinds import EXPORTS
from results.manifest import InputPart, RunManifest, write_manifest
from results.record import Record, encode_record, entry_of
from results.shards import ShardWriter
from results.store import open_store
