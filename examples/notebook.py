# %% [markdown]
# # From a trace to a model and back, in Python
#
# Every step of the command line is a public function that returns plain data or Arrow tables. The cells
# below run in a notebook (any editor that knows `# %%`), or as a script: `python examples/notebook.py`.

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import loadstone
from loadstone import model, trace

here = Path(__file__).resolve().parent
work = Path(TemporaryDirectory(prefix="loadstone-").name)
