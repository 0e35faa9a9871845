"""Classic benchmarks by name: scripts in Filebench's language, of our own writing, that name their sources.

>>> from loadstone import personalities
>>> varmail = personalities.find("varmail")
>>> varmail.title
'a mail server that keeps one file per message'
>>> personalities.sized(varmail, 1 << 30)
{'nfiles': '81920'}
>>> import loadstone
>>> job = loadstone.job("varmail", on="/mnt/tree", options=loadstone.RunOptions(size="1g"))

Each script begins with a head of a fixed form: what it models, where its numbers come from, how many of each
flowop a loop of its threads does, which variable makes it larger, and what each variable is.
``docs/reference/workloads.md`` is made of these heads.
"""

from loadstone.personalities._find import find, names
from loadstone.personalities._head import Loop, Personality, Variable, read_head
from loadstone.personalities._size import check_names, check_room, check_times, held, prepared, sized

__all__ = [
    "Loop",
    "Personality",
    "Variable",
    "check_names",
    "check_room",
    "check_times",
    "find",
    "held",
    "names",
    "prepared",
    "read_head",
    "sized",
]
