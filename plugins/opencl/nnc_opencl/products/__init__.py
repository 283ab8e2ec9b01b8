"""Products of matrices and convolutions as OpenCL kernels: tiles of sums in registers, with what follows them."""
