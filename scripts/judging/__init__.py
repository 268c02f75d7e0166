"""The world of the bundled judge, what an ideal judge says of it, and how a small model is taught that.

world.py       questions with four candidates, exactly one best, and the rules that memories hold
talk.py        what each persona says and scores, given what it believes the answer to be
samples.py     debates with earlier agents right or wrong; prompts as the engine renders them, with the ideal reply
forms.py       the forms of a reply, and what of each is learnt
harder.py      a mixture of questions that is hard for the bundled judge
tokens.py      the tokenizer: digits alone, byte fallback, long pieces for what is said often
training.py    model and training loop
measuring.py   accuracies, intervals and the like from evaluations
running.py     the engine over held-out tasks
"""
