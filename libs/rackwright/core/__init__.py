"""What Rackwright thinks: the fleet, the fold, legality, invariants, reasons and policies. Pure."""
