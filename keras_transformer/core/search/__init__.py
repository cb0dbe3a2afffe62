"""Search: ids in, ids out (section 6.1). Knows nothing of text."""
