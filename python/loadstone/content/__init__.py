"""Content of what is stored: duplicates and compressibility, asked for and found.

>>> from loadstone import content
>>> found = content.examine("/srv/data")
>>> found["fixed"]["ratio"], found["by_piece"]["zstd"]
"""

from loadstone.content._asked import Content, of_options, of_run, reading, unread
from loadstone.content._examine import Codecs, Duplicates, Found, examine

__all__ = ["Codecs", "Content", "Duplicates", "Found", "examine", "of_options", "of_run", "reading", "unread"]
