"""Inference methods: one file, one idea."""
