# %% [markdown]
# # From a trace to a model and back, in Python
#
# Every step of the command line is a public function that returns plain data or Arrow tables. The
# cells below run in a notebook (any editor that knows `# %%`) or as a script:
# `python examples/notebook.py`.

# %%
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import loadstone
from loadstone import model, report, trace
from loadstone.plan import RunOptions

here = Path(__file__).resolve().parent
scratch = tempfile.TemporaryDirectory(prefix="loadstone-notebook-")
work = Path(scratch.name)

# %% [markdown]
# ## The trace
# `describe` returns one dictionary; `read` an Arrow table, which polars, pandas and duckdb take as it is.

# %%
loop0 = here / "loop0.parquet"
facts = trace.describe(loop0)
print(f"{facts['requests']:,} requests in {facts['span_ns'] / 1e9:.1f} s, {facts['read_share']:.0%} reads")

table = trace.read(loop0)
time = table.column("time").to_numpy()
per_second = np.bincount(time // 1_000_000_000)
print(f"busiest second: {per_second.max():,} requests, median {np.median(per_second):,.0f}")

# %% [markdown]
# ## The model
# One-second windows; windows that look alike share a matrix, and the matrices in order are the phases.

# %%
fitted = model.fit(loop0, window=1.0)
for phase in fitted.phases():
    span = f"{phase['start']:5.0f} to {phase['end']:3.0f} s"
    print(f"{span}: matrix {phase['matrix']}, {phase['requests']:,} requests")
fitted.save(work / "loop0.mdh")
print(f"the trace takes {loop0.stat().st_size:,} bytes, the model {(work / 'loop0.mdh').stat().st_size:,}")

# %% [markdown]
# A model generates requests like those of the trace. Fitted anew, they give the same histogram.

# %%
drawn = fitted.sample(seed=7)
print(f"{drawn.num_rows:,} requests drawn")
sizes = fitted.marginal("size")
common = int(sizes.first[np.argmax(sizes.counts)])
print(f"most common size: {common} bytes, {sizes.counts.max() / sizes.counts.sum():.1%} of the requests")

# %% [markdown]
# ## The load
# A replay and a model are jobs like any other, and are run on a file of their own: eight times as fast
# as recorded, for two seconds.

# %%
target = work / "target.img"
asked = RunOptions(pace=8.0, size=256 << 20, offsets="wrap", duration=2.0, interval=0.1)
jobs = {
    "replay": loadstone.job(loop0, target, asked),
    "model": loadstone.job(work / "loop0.mdh", target, replace(asked, allow_destroy=[target])),
}
bundles = []
for name, job in jobs.items():
    done = loadstone.run(job, work / f"{name}.bundle", sample=0.1)
    bundles.append(done)
    p99 = done.ops.histogram().percentile(99)
    print(f"{name}: {done.summary['ops_per_s']:,.0f} requests/s, 99th percentile {p99 / 1e6:.2f} ms")

# %% [markdown]
# ## The report
# One page that loads nothing; keep it with the results.

# %%
page = report.write([done.path for done in bundles], work / "report.html")
print(page.conclusion)
scratch.cleanup()
