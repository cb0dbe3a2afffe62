"""Known translations: memories, their files, and corrections."""
