"""From counts to sets of plausible models."""
