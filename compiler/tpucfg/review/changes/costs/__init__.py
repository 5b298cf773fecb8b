"""Changes to what jobs cost, and to the records that costs and the gate are computed from."""
