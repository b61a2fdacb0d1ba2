"""The command line `rackwright`: start a cell, submit jobs, look at racks, ask why."""
