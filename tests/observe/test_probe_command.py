"""User probes on the command line."""

import json

import pytest

from loadstone.bundle import Bundle


@pytest.mark.parametrize("verb", [("run", "randread"), ("replay", "TRACE")])
def test_a_probe_beside_a_load(loadstone, root, tmp_path, verb):
    words = [str(root / "examples" / "loop0.parquet") if w == "TRACE" else w for w in verb]
    out = tmp_path / "b"
    done = loadstone(
        *words, "--on", "null:", "--duration", "0.5s", "--out", out, "--sample", "50ms", "--json",
        "--probe", "meter=echo watts=12.5", "--probe", "broken=exit 4",
    )  # fmt: skip
    bundle = Bundle.read(out)
    assert ("meter.watts", 12.5) in [reading[1:] for reading in bundle.observation.readings]
    warnings = json.loads(done.stdout)["warnings"]
    assert any("probe broken: exit status 4" in w for w in warnings), warnings
    assert bundle.summary["observation"]["interval_ns"] == 50_000_000


def test_probes_need_a_bundle(loadstone):
    done = loadstone("run", "randread", "--on", "null:", "--duration", "1s", "--probe", "a=b", status=2)
    assert "--out" in done.stderr
