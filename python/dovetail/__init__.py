"""Dovetail: a flash storage stack on one rig, in virtual time.

>>> import dovetail
>>> results = dovetail.bench("job.fio", stack=["f2fs", "ext4"], scale="1/16")
>>> results["f2fs"].totals.write_mb_per_s
>>> results["f2fs"].series().to_pandas().plot(x="time_s", y="device_waf")

Arguments have the names of the command line (``dovetail bench --help``). Results are those of the
command line, byte for byte but for the line that names the call. Stacks and drives are names,
.toml files or dicts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._calls import bench, replay, reproduce
from ._dovetail import DovetailError, UsageError
from ._dovetail import version as _version
from ._progress import Progress
from .catalog import Figure, drive_figures, drives, stacks
from .comparing import Comparison, compare, report
from .drive import Drive
from .frame import Frame
from .images import Check, Damage, File, Image
from .results import Record, Reproduction, Results, Run, Statement, load, loads
from .sweeps import Sweep, sweep

if TYPE_CHECKING:
    from . import plots as plots

__version__ = _version().split()[0]

__all__ = [
    "Check",
    "Comparison",
    "Damage",
    "DovetailError",
    "Drive",
    "Figure",
    "File",
    "Frame",
    "Image",
    "Progress",
    "Record",
    "Reproduction",
    "Results",
    "Run",
    "Statement",
    "Sweep",
    "UsageError",
    "bench",
    "compare",
    "drive_figures",
    "drives",
    "load",
    "loads",
    "replay",
    "report",
    "reproduce",
    "stacks",
    "sweep",
]


def __getattr__(name: str) -> Any:
    # only who draws needs its library
    if name == "plots":
        return import_module(".plots", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
