"""A text with marks: its sentences, their translation, and the places of the marks."""
