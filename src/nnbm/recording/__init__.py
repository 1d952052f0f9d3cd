"""Draws on disk: a folder of whole blocks that a killed run goes on from, and that is read block by block."""
