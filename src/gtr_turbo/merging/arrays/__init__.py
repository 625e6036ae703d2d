"""The part of merging that needs numpy alone: what the rest computes with, and merges of files.

Importing torch costs more than a merge of a small model, so this package never does.
"""
