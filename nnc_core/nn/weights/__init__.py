"""Parameters as a whole: frozen, mapped, and under the names of other libraries."""
