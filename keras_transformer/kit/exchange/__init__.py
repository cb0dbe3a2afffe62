"""Exports of trained models for use elsewhere."""
