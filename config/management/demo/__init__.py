"""Demo data. Row number `n` is the same row on every machine and in every run: nothing is random."""
