"""What studies do to the host: commands, systems, changes; written down first, and taken back."""
