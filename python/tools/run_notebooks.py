"""Executes the notebooks of examples/ and keeps what they show.

    python tools/run_notebooks.py [NAME...]
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook as it is after all its cells have run, without what changes each time."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            # warnings and bars of progress
            cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
    return notebook


def main() -> None:
    names = sys.argv[1:] or sorted(path.name for path in EXAMPLES.glob("*.ipynb"))
    for name in names:
        notebook = executed(EXAMPLES / name)
        notebook.metadata.language_info = {"name": "python"}
        nbformat.write(notebook, EXAMPLES / name)


if __name__ == "__main__":
    main()
