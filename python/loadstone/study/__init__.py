"""Studies: experiments that a file describes (``docs/reference/formats/study.md``), run until they are sure.

>>> from loadstone import study
>>> told = study.run("mail.toml", out="mail", allow_commands=True)
>>> print(study.text(study.report("mail")))
"""

from loadstone.study.file.spec import schema
from loadstone.study.performing import clean, plan, resume, run, show
from loadstone.study.results import arms, report, text

__all__ = ["arms", "clean", "plan", "report", "resume", "run", "schema", "show", "text"]
