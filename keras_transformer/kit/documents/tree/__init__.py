"""The tree of a text with marks: its sentences, their translation, and the marks' places."""
