"""What people do with a model. Each folder can be removed without breaking `core` and `use`."""
