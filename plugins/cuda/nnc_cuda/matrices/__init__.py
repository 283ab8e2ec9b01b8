"""Linear algebra by NVIDIA's cuSOLVER and cuBLAS, between loop nests that bring matrices to them and back."""
