"""Training that goes on: from another model's weights, and by corrections as they come."""
