"""A cell with a second tier of leases, whose bus goes away."""
