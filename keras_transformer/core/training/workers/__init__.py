"""Workers of a training on several machines, or a lone one."""
