"""A small web page and a JSON API for a trained model."""
