"""Floor 13: the public functions: Array API and neural signatures, normalised, over the operators.

Each module lists in `__all__` what is public; `public` gathers them.
"""
