"""What every shelf uses: errors, checked fields, files, progress and output."""
