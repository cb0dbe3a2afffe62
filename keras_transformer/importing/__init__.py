"""Imports models trained by other toolkits."""
