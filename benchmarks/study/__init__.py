"""The study of policies: every one on the same arrivals and faults, over loads, failures and repair
times, with paired differences. Each run's result is a file, so it goes on where it was stopped.
"""
