"""Floor 14: keys of `x[key]`: basic ones, arrays and masks; reading and replacing items."""
