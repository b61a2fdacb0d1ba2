"""A recorded workload through a live cell: what happened to it, checked, in figures and pictures.

`workload` and `troubles` say what is to happen, `drive` makes it happen, `story` reads it back from
the ledger, `report` and `pictures` tell it.
"""
