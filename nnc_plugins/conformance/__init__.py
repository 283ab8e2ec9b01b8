"""The conformance kit: what any device has to get right, whoever made it.

`cases` is the table of inputs and attributes for every operator, `agreement` says how near a result must be.
"""
