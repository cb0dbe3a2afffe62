"""A trained model at work: stored, translating, scored and adapted. Imports nothing of `kit`."""
