"""Models that other toolkits trained, read as models of this library."""
