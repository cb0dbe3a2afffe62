"""Pictures and pages of the attention of every head (Figures 3 to 5)."""
