"""A small trace that several tests read."""

from __future__ import annotations

from pathlib import Path

import pytest

SPC = "0,8,4096,R,0.000000\n1,16,512,w,0.500000\n0,16,8192,W,0.750000\n"


@pytest.fixture
def spc(tmp_path: Path) -> Path:
    path = tmp_path / "t.spc"
    path.write_text(SPC)
    return path
