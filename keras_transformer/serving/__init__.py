"""A small web page and JSON endpoint over an exported model."""
