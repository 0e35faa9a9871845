"""Scripts of Filebench's workload model language, 1.4 and 1.5, read into a syntax tree and written again.

>>> from loadstone.wml import parse, print_script
>>> script = parse("set $dir=/tmp define fileset name=mail,path=$dir,size=8k,entries=50,prealloc")
>>> files = script.commands[1]
>>> files.name, files.get("size"), files.get("prealloc")
('mail', Integer(value=8192), Boolean(value=True))
>>> print(print_script(script), end="")
set $dir=/tmp
define fileset name=mail,path=$dir,size=8k,entries=50,prealloc

One grammar reads both dialects. In it only the words that begin commands, threads and flowops are keywords,
and only where those may begin; attributes are names with values, which a table judges. So a new flowop or
attribute is a line of the table, any word can be a value, and a wrong name gets an error that knows what it
belongs to.

``interpret`` performs a script: what comes out is a list of actions, of which runs are plans.
"""

from loadstone.plan.actions import FIGURES, Action, Beside, Dump, Figure, Print, RunPlan, Shell, Wait, Window
from loadstone.wml._ast import (
    Arithmetic,
    Attribute,
    Attributed,
    Boolean,
    Command,
    Create,
    CustomVariable,
    Debug,
    DefineFiles,
    DefineFlowop,
    DefinePositions,
    DefineProcess,
    DefineRandom,
    Enable,
    EventGenerator,
    Flowop,
    Foreach,
    Hook,
    Hypervisor,
    Integer,
    Load,
    Local,
    Machine,
    Mode,
    MultiSync,
    Node,
    Number,
    Pause,
    PeriodicRun,
    Quit,
    RandomVariable,
    Row,
    Run,
    Say,
    Set,
    Show,
    Shutdown,
    Stats,
    System,
    Table,
    Text,
    Thread,
    Value,
    Variable,
    Word,
    constant,
    pairs,
    walk,
)
from loadstone.wml._configs import interpret_profile
from loadstone.wml._errors import Remark, Source, Span, WmlError
from loadstone.wml._interpret import Settings, interpret
from loadstone.wml._interpretation import Interpretation
from loadstone.wml._laws import average
from loadstone.wml._parse import Script, check_names, parse
from loadstone.wml._print import print_script, print_value
from loadstone.wml._profile import Config, Profile, Setting, parse_profile
from loadstone.wml._review import Evidence
from loadstone.wml._words import COMMANDS, CVARS, FLOWOPS, TYPES, canonical, flowop_type, flowop_word

__all__ = [
    "COMMANDS",
    "CVARS",
    "FIGURES",
    "FLOWOPS",
    "TYPES",
    "Action",
    "Arithmetic",
    "Attribute",
    "Attributed",
    "Beside",
    "Boolean",
    "Command",
    "Config",
    "Create",
    "CustomVariable",
    "Debug",
    "DefineFiles",
    "DefineFlowop",
    "DefinePositions",
    "DefineProcess",
    "DefineRandom",
    "Dump",
    "Enable",
    "EventGenerator",
    "Evidence",
    "Figure",
    "Flowop",
    "Foreach",
    "Hook",
    "Hypervisor",
    "Integer",
    "Interpretation",
    "Load",
    "Local",
    "Machine",
    "Mode",
    "MultiSync",
    "Node",
    "Number",
    "Pause",
    "PeriodicRun",
    "Print",
    "Profile",
    "Quit",
    "RandomVariable",
    "Remark",
    "Row",
    "Run",
    "RunPlan",
    "Say",
    "Script",
    "Set",
    "Setting",
    "Settings",
    "Shell",
    "Show",
    "Shutdown",
    "Source",
    "Span",
    "Stats",
    "System",
    "Table",
    "Text",
    "Thread",
    "Value",
    "Variable",
    "Wait",
    "Window",
    "WmlError",
    "Word",
    "average",
    "canonical",
    "check_names",
    "constant",
    "flowop_type",
    "flowop_word",
    "interpret",
    "interpret_profile",
    "pairs",
    "parse",
    "parse_profile",
    "print_script",
    "print_value",
    "walk",
]
