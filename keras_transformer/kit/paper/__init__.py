"""The paper's tables, with figures computed and measured for them."""
