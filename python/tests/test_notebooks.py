"""The notebooks of examples/: they run, and show what is kept in them."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "tools"))
from run_notebooks import EXAMPLES, executed  # noqa: E402


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """All that the cells show but for pictures, which differ with the fonts of a machine."""
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    return [out.get("text") or out["data"].get("text/plain", "") for out in outputs
            if "image/png" not in out.get("data", {})]


def pictures(notebook: nbformat.NotebookNode) -> int:
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    return sum("image/png" in out.get("data", {}) for out in outputs)


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.ipynb")))
def test_a_notebook_shows_what_is_kept_in_it(name: str) -> None:
    kept = nbformat.read(EXAMPLES / name, as_version=4)
    now = executed(EXAMPLES / name)
    assert texts(now) == texts(kept), f"run python/tools/run_notebooks.py {name}, and look at it"
    assert pictures(now) == pictures(kept) > 0
