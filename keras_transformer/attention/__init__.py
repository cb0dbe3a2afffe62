"""The attention of every head, as pictures and pages (Figures 3 to 5)."""
