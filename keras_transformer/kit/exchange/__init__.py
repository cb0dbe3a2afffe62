"""Models from elsewhere and for elsewhere: imports and exports."""
