"""Reads the files that people write, jobs and topologies: text in, values out."""
