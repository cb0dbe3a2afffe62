"""What every head attends to, as pictures and pages (Figures 3 to 5)."""
