"""Profiles performed: each configuration is a script with variables of its own."""

from __future__ import annotations

import os
from dataclasses import replace

from loadstone._core import open_regular
from loadstone.errors import Error
from loadstone.plan.actions import Print
from loadstone.wml import _ast as ast
from loadstone.wml._errors import shown
from loadstone.wml._interpret import Settings, interpret
from loadstone.wml._interpretation import Interpretation
from loadstone.wml._parse import Script, parse
from loadstone.wml._profile import Profile, Setting
from loadstone.wml._scope import Drawn, Scope

# What the driver of 1.4 is told, and no variable of the workload.
_DRIVER = frozenset({"personality", "function", "description", "stats", "filesystems", "runtime", "multi"})


def interpret_profile(profile: Profile, settings: Settings) -> Interpretation:
    """What a profile's configurations do, one after the other.

    Each loads its personality, ``NAME.f`` beside the profile; its other keys are variables.
    """
    done = Interpretation(warnings=list(profile.warnings), files=[profile.name])
    if not profile.configs:
        raise Error(f"{profile.name}: has no CONFIG, so there is nothing to run")
    for config in profile.configs:
        own = {s.key: s for s in (*profile.defaults, *config.settings)}
        if "personality" not in own:
            raise profile.error(config, f"CONFIG {shown(config.name)} has no personality")
        script = _loaded(profile.name, own["personality"], profile)
        scope = Scope()
        as_script = Script((), profile.name, source=profile.source)
        values = {key: scope.value(as_script, s.value) for key, s in own.items() if key not in _DRIVER}
        plain = {key: value for key, value in values.items() if not isinstance(value, Drawn)}
        duration = settings.options.duration
        if duration is None and "runtime" in own:
            duration = scope.number(as_script, own["runtime"].value, "runtime")
        options = replace(settings.options, duration=duration)
        done.actions.append(Print(f"CONFIG {config.name}"))
        one = interpret(script, replace(settings, options=options), given=plain)
        done.actions.extend(one.actions)
        done.warnings.extend(one.warnings)
        done.notes.extend(one.notes)
        done.files.extend([script.name, *one.files])
    return done


def _loaded(beside: str, node: Setting, profile: Profile) -> Script:
    name = ast.constant(node.value) or ""
    path = os.path.join(os.path.dirname(beside), f"{name}.f")
    try:
        os.stat(path)
        with open(open_regular(path), "rb") as file:
            return parse(file.read(), path)
    except (Error, OSError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise profile.error(node, f"{path}: {what}".removeprefix(f"{path}: {path}: ")) from None
