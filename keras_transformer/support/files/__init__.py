"""Local and remote files: atomic writes, checked reads, locks."""
