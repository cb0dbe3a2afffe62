"""Models at rest: what is at a path, what is known about it, and how it is read."""
