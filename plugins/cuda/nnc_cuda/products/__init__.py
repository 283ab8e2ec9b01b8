"""Products of matrices and convolutions as CUDA kernels: tiles of sums in registers, with what follows them."""
