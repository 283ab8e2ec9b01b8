"""Discrete Fourier transforms by NVIDIA's cuFFT."""
