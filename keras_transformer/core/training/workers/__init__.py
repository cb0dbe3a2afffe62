"""The workers that train one model together, on several machines or alone."""
