"""What all tests share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are named as from the root of the sources."""
    monkeypatch.chdir(ROOT)


@pytest.fixture
def program() -> list[str]:
    """The command line: the dovetail program if DOVETAIL names one, else the package's own."""
    named = os.environ.get("DOVETAIL")
    return [named] if named else [sys.executable, "-m", "dovetail"]


@pytest.fixture
def image(tmp_path: Path, program: list[str]) -> Path:
    """An F2FS image with a tree of files."""
    tree = tmp_path / "tree"
    (tree / "dir" / "sub").mkdir(parents=True)
    (tree / "hello").write_text("hello\n")
    (tree / "dir" / "zeros").write_bytes(bytes(100_000))
    (tree / "dir" / "sub" / "caf\udce9").write_bytes(b"latin")
    (tree / "link").symlink_to("dir/zeros")
    path = tmp_path / "disk.img"
    subprocess.run([*program, "mkfs", "f2fs", path, "--size", "64M"], check=True, capture_output=True)
    for each in sorted(tree.iterdir()):
        subprocess.run([*program, "cp", "-r", each, f"{path}:/"], check=True, capture_output=True)
    shutil.rmtree(tree)
    return path
