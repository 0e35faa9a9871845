import sys
from pathlib import Path

# outcome.py is used by a child process of a test too, so it is a module and not a fixture.
sys.path.insert(0, str(Path(__file__).parent))
