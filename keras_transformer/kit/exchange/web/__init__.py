"""A translator that is one static page: model, vocabulary and search run in the browser."""
