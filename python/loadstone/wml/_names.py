"""Names that a script defines, and the places that refer to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from loadstone._text import meant
from loadstone.wml import _ast as ast
from loadstone.wml._errors import Span, shown
from loadstone.wml._review import Review
from loadstone.wml._words import FLOWOPS, canonical, flowop_type, flowop_word

Place = Literal["fileset", "flowop", "posset"]

_CALLED: Mapping[Place, str] = {"fileset": "file or file set", "flowop": "flowop", "posset": "position set"}
_REFERS = {word.name: word.refers for word in flowop_type("").attributes.values() if word.refers}


class Names:
    """What is defined in a script.

    A name with a variable, or a ``load``, means that more may be defined than can be seen; then nothing is
    said to be missing.
    """

    def __init__(self, of: Review) -> None:
        """Nothing is defined yet."""
        self._of = of
        self.defined: dict[Place, dict[str, Span]] = {"fileset": {}, "flowop": {}, "posset": {}}
        self.processes: dict[str, Span] = {}
        self.composites: dict[str, ast.DefineFlowop] = {}
        self.vague: set[Place] = set()
        self.vague_composites = False
        self.loads = False
        self._references: list[tuple[Place, ast.Attribute]] = []
        self._unknown: list[ast.Flowop] = []
        self._used: dict[str, set[str]] = {}

    def define(self, command: ast.Command) -> None:
        """Keeps what a command defines and refers to. Refuses what is defined twice."""
        match command:
            case ast.DefineFiles():
                self._once("file or file set", command, self.defined["fileset"], "fileset")
            case ast.DefinePositions():
                self._once("position set", command, self.defined["posset"], "posset")
            case ast.DefineProcess():
                self._once("process", command, self.processes, None)
                for thread in command.threads:
                    self._flowops(thread.flowops)
            case ast.DefineFlowop():
                self._composite(command)
                self._flowops(command.flowops)
            case ast.Hypervisor():
                for machine in command.machines:
                    for one in machine.body:
                        self._flowops(one.flowops if isinstance(one, ast.Thread) else (one,))
                # Every VM has a disk image, which its flowops may name or not.
                self.vague.add("fileset")
            case ast.Load():
                self.loads = True

    def _once(self, what: str, node: ast.Attributed, known: dict[str, Span], place: Place | None) -> None:
        name, attribute = node.name, node.attribute("name")
        if name is None:
            if attribute is not None and place is not None:
                self.vague.add(place)
        elif attribute is not None:
            if name in known:
                line = self._of.source.place(known[name].start)[0]
                text = f"there is already a {what} {shown(name)}"
                raise self._of.error(attribute.at, text, f"it is defined in line {line}")
            known[name] = attribute.at

    def _composite(self, command: ast.DefineFlowop) -> None:
        attribute = command.attribute("name")
        name = command.name
        earlier = self.composites.get(name or "")
        found = earlier.attribute("name") if earlier is not None else None
        self._once("composite flowop", command, {name or "": found.at} if found else {}, None)
        if attribute is None or name is None:
            self.vague_composites = self.vague_composites or attribute is not None
            return
        word = flowop_word(name)
        if word is not None and word.dialect is None:
            raise self._of.error(attribute.at, f"{name} is a flowop already", "choose another name")
        if word is not None:
            self._of.warn(attribute.at, f"{name} is also a built-in flowop here; the script's own is used")
        self.composites[name] = command

    def _flowops(self, flowops: Iterable[ast.Flowop]) -> None:
        for flowop in flowops:
            for attribute in flowop.attributes:
                place = _REFERS.get(canonical(attribute.name))
                if place is not None:
                    self._references.append((place, attribute))
            attribute_ = flowop.attribute("name")
            name = flowop.name
            if name is not None:
                self.defined["flowop"].setdefault(name, flowop.at)
            elif attribute_ is not None:
                self.vague.add("flowop")

    def unknown_type(self, flowop: ast.Flowop) -> None:
        """A type that is neither built in nor a composite of this script."""
        self._unknown.append(flowop)

    def check(self, loaded: Iterable[Names] = ()) -> None:
        """Raises where something refers to what neither this script nor the loaded ones define."""
        others = list(loaded)
        composites = {name for names in (self, *others) for name in names.composites}
        if not any(names.vague_composites for names in (self, *others)):
            for flowop in self._unknown:
                if flowop.type not in composites:
                    start = self._of.source.text.find(flowop.type, flowop.at.start + len("flowop"))
                    at = Span(start, start + len(flowop.type))
                    known = (
                        "docs/reference/filebench.md lists the built-in flowops; define flowop makes others"
                    )
                    help = meant(flowop.type, [*FLOWOPS, *composites], known)
                    raise self._of.error(at, f"there is no flowop {shown(flowop.type)}", help)
        vague = {place for names in (self, *others) for place in names.vague}
        for place, attribute in self._references:
            name = ast.constant(attribute.value)
            # NAME.NAME is a flowop within a composite one, which is known when it runs.
            if name is None or place in vague or (place == "flowop" and "." in name):
                continue
            if not any(name in names.defined[place] for names in (self, *others)):
                known_names = [one for names in (self, *others) for one in names.defined[place]]
                what = f"there is no {_CALLED[place]} {shown(name)}"
                raise self._of.error((attribute.value or attribute).at, what, meant(name, known_names))

    def check_recursion(self) -> None:
        """Raises where a composite flowop comes to call itself."""
        done: set[str] = set()
        for first in self.composites:
            path: list[str] = []
            on_path: set[str] = set()
            stack: list[tuple[str, bool]] = [(first, False)]
            while stack:
                name, leaving = stack.pop()
                if leaving:
                    on_path.discard(path.pop())
                    done.add(name)
                    continue
                if name in done:
                    continue
                path.append(name)
                on_path.add(name)
                stack.append((name, True))
                for flowop in self.composites[name].flowops:
                    if flowop.type in on_path:
                        round_ = [*path[path.index(flowop.type) :], flowop.type]
                        said = " -> ".join(round_ if len(round_) < 6 else [*round_[:4], "...", round_[-1]])
                        raise self._of.error(
                            self._of.head(flowop), f"composite flowop {shown(flowop.type)} calls itself", said
                        )
                    if flowop.type in self.composites:
                        stack.append((flowop.type, False))

    def used_by(self, name: str) -> set[str]:
        """Variables that a composite flowop uses, with those of the composites that it calls."""
        if name not in self._used:
            found: set[str] = set()
            reached, stack = {name}, [name]
            while stack:
                for node in ast.walk(self.composites[stack.pop()]):
                    if isinstance(node, ast.Variable):
                        found.add(node.name)
                    elif (
                        isinstance(node, ast.Flowop)
                        and node.type not in reached
                        and node.type in self.composites
                    ):
                        reached.add(node.type)
                        stack.append(node.type)
            self._used[name] = found
        return self._used[name]
