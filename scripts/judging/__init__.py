"""The world of the bundled judge, what an ideal judge says of it, and how a small model is taught that.

world.py       questions with two to six candidates of which one is best
facts.py       names that count as numbers, which only memories say
outside.py     tasks that are not of this world
talk.py        what each persona says and scores, given what it believes the answer to be
samples.py     debates with earlier agents right or wrong; prompts as the engine renders them, with the ideal reply
questions.py   what judges of single candidates, ballots and steps are asked, with the ideal reply
forms.py       the forms of a reply, and what of each is learnt
harder.py      a mixture of questions that is hard for the bundled judge
tokens.py      the tokenizer: digits alone, byte fallback, long pieces for what is said often
training.py    model and training loop

What it is measured with:

measuring.py          accuracies, intervals and the like from evaluations
arms.py               debates, silent judges and others over the same tasks
running.py            all parts of a measurement; the questions that need no memory
profiles.py           hidden profiles: facts split over the memories of several agents
hidden.py             debates over these, and silent judges, single ones, memories that do not fit
outside_held_out.py   families of tasks outside the world that no training saw
limits.py             how often the judge abstains from these, and from its own
small_worlds.py       the evaluators value, vote and step through `debate run`
demonstration.py      the tasks and memories of `debate demo`
"""
