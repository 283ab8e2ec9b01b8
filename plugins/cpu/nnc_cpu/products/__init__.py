"""Products of matrices as machine code: register tiles over packed panels, for products and convolutions."""
