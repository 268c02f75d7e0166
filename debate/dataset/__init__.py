"""The formats of eval sets, one file each."""
