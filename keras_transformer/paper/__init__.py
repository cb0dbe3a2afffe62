"""The tables of the paper, and what is computed and measured for them."""
