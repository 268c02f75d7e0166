"""Our judgment in other people's frameworks: each module is one framework, which it imports when it is used.

All of them go through `debate.Judge`.
"""
