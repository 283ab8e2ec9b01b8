"""Products of matrices and convolutions as numbers: what library code of any device is written for."""
