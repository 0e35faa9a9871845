"""Study files: their keys, placeholders and faults, and the cells that they expand to."""
