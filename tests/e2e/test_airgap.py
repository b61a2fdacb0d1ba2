"""A bundle for a site without a network is saved, loaded again, and checked on the way."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound

from tests.support.engine import ROOT, compose_command

pytestmark = pytest.mark.e2e
TINY = "rackwright-tiny:tested"


def script(name: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run one of the scripts."""
    command = [str(ROOT / "deploy" / "airgap" / name), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[str]:
    """An image of one small file: what is in an image is nothing to these scripts."""
    (tmp_path / "file").write_text("here\n")
    packed = subprocess.run(
        ["tar", "-C", str(tmp_path), "-c", "file"], capture_output=True, check=True
    )
    subprocess.run(["docker", "import", "-", TINY], input=packed.stdout, check=True)
    yield TINY
    subprocess.run(["docker", "image", "rm", TINY], capture_output=True, check=False)


def test_a_bundle_brings_images_and_all_that_starts_them(tiny: str, tmp_path: Path) -> None:
    bundle, site = tmp_path / "bundle.tar", tmp_path / "site"
    done = script("save", bundle, tiny)
    assert done.returncode == 0, done.stderr
    client = docker.from_env()
    client.images.remove(tiny)
    with pytest.raises(ImageNotFound):
        client.images.get(tiny)
    done = script("load", bundle, site)
    assert done.returncode == 0, done.stderr
    assert client.images.get(tiny).tags == [tiny]
    client.close()
    there = site / "rackwright"
    environment = {**os.environ, "RACKWRIGHT_IMAGE": tiny}
    parsed = subprocess.run(
        [*compose_command(), "config", "--quiet"],
        cwd=there, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert parsed.returncode == 0, parsed.stderr
    for path in (
        "docs/operations.md",
        "deploy/systemd/nats.service",
        "deploy/kubernetes/base.yaml",
    ):
        assert (there / path).read_bytes() == (ROOT / path).read_bytes()


def test_a_damaged_bundle_loads_nothing(tiny: str, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.tar"
    assert script("save", bundle, tiny).returncode == 0
    name = b"services:"
    raw = bundle.read_bytes()
    bundle.write_bytes(raw.replace(name, name.upper(), 1))
    done = script("load", bundle, tmp_path / "site")
    assert done.returncode == 1
    assert "the bundle is damaged: copy it again; nothing was loaded" in done.stderr


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    done = script("save", tmp_path / "bundle.tar", "rackwright-nowhere:none")
    assert (done.returncode, "there is no image rackwright-nowhere:none" in done.stderr) == (
        1,
        True,
    )
    done = script("load", tmp_path / "nowhere.tar")
    assert (done.returncode, "cannot be read" in done.stderr) == (1, True)
