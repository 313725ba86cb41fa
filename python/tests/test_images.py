"""Images, read without mounting them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import dovetail


def test_files_are_listed_read_and_extracted(image: Path, tmp_path: Path) -> None:
    disk = dovetail.Image(image)
    files = {file.path: file for file in disk.ls(recursive=True)}
    assert set(files) == {"/dir", "/dir/sub", "/dir/sub/caf\udce9", "/dir/zeros", "/hello", "/link"}
    assert files["/dir"].is_dir and files["/hello"].size == 6 and files["/hello"].name == "hello"
    assert files["/link"].target == "dir/zeros"
    assert disk.read("/hello") == b"hello\n"
    assert disk.read("/dir/sub/caf\udce9") == b"latin"
    assert [file.path for file in disk.ls("/dir")] == ["/dir/sub", "/dir/zeros"]
    disk.extract(tmp_path / "out")
    assert (tmp_path / "out" / "dir" / "zeros").read_bytes() == bytes(100_000)
    disk.extract(tmp_path / "part", "/dir")
    assert (tmp_path / "part" / "zeros").exists()


def test_a_damaged_image_is_found_out_and_repaired(image: Path) -> None:
    disk = dovetail.Image(image)
    assert disk.fsck() and disk.fsck().findings == []
    with image.open("r+b") as file:
        # the first superblock: a copy follows it
        file.seek(1024)
        file.write(bytes(512))
    found = disk.fsck()
    assert not found and found.findings[0].text
    assert disk.fsck(repair=True)
    assert disk.fsck()


def test_a_link_of_ext4_has_its_target_and_its_repair_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ext4.img"
    path.touch()
    os.truncate(path, 64 << 20)
    subprocess.run(["mkfs.ext4", "-q", path], check=True)
    subprocess.run(["debugfs", "-w", "-R", "symlink lnk hello", path], check=True, capture_output=True)
    disk = dovetail.Image(path)
    assert [file.target for file in disk.ls() if file.name == "lnk"] == ["hello"]
    assert disk.fsck(repair=True), "nothing is wrong"
    subprocess.run(["debugfs", "-w", "-R", "clri lnk", path], check=True, capture_output=True)
    assert not disk.fsck()
    with pytest.raises(dovetail.DovetailError, match="e2fsck"):
        disk.fsck(repair=True)


def test_what_is_not_there_is_said(image: Path) -> None:
    disk = dovetail.Image(image)
    with pytest.raises(dovetail.DovetailError, match="/nothing"):
        disk.read("/nothing")
    with pytest.raises(dovetail.DovetailError, match="/nothing"):
        disk.ls("/nothing")
    with pytest.raises(dovetail.DovetailError, match="partition"):
        dovetail.Image(image, partition=2).ls()
    with pytest.raises(dovetail.DovetailError, match="not a regular file"):
        disk.read("/dir")
