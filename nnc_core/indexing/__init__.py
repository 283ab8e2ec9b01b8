"""Keys of `x[key]`: basic ones, arrays and masks; reading and replacing items."""
