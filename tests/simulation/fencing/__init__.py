"""Protocol P2, fencing, explored exhaustively with the rules of the real machines."""
