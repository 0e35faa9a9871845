"""kill -9 at any moment: a report is whole or not there, and what is left goes with the next one."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import bundles


@pytest.mark.slow
@pytest.mark.parametrize("force", [False, True])
def test_a_killed_report_is_whole_or_not_there(tmp_path, loadstone, force):
    bundle = bundles.evaluation(tmp_path / "bundle", summary=bundles.SUMMARY)
    out = tmp_path / "out" / "report.html"
    out.parent.mkdir()
    begun = time.monotonic()
    program = loadstone("report", bundle, "-o", out).args[0]
    seconds, whole = time.monotonic() - begun, out.read_bytes()
    assert whole.rstrip().endswith(b"</html>")
    if not force:
        out.unlink()
    words = [program, "report", bundle, "-o", out, *(["--force"] if force else [])]
    dice = random.Random(1)
    for _ in range(10):
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0.2, 1.1) * seconds)
        child.kill()
        child.wait()
        assert out.exists() or not force, "one of the two is there at any time"
        if out.exists():
            assert out.read_bytes() == whole
        assert len(list(out.parent.iterdir())) <= 2, "each removes what the one before it left"
        if not force:
            out.unlink(missing_ok=True)
    loadstone(*words[1:])
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]
