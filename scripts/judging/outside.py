"""Tasks outside the judge's world: texts that have nothing of it, and questions that only look like one of its own.

Those that are trained on come from here; those that are measured with from `outside_held_out.py`, whose families have
nothing in common with these. Everything follows from the random generator that is passed in.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from judging.world import DEBATED, make_question

_WORDS = tuple(
    """able about above across act add after again age agree air all allow also always among an and animal answer any
    appear apple are area arm around arrive art as ask at away baby back bad bag ball bank base be bear beat beauty bed
    before begin behind believe best better between big bird black blood blow blue board boat body bone book both bottom
    box boy branch bread break bright bring broad brother brown build burn busy but buy by cake call can capital car
    care carry case cat catch cause cell center change chart check child choose church circle city class clean clear
    climb clock close cloth cloud coat code cold collect color come common complete contain cook cool copy corn corner
    cost could count country course cover cow create crop cross crowd cry cut dance danger dark day dead deal dear death
    decide deep describe desert design detail develop did die differ dinner direct discuss do doctor dog dollar door
    double down draw dream dress drink drive drop dry during each ear early earth ease east eat edge effect egg eight
    either electric else end enemy energy engine enough enter equal even evening event ever every example except expect
    explain eye face fact fair fall family famous far farm fast fat father favor fear feed feel few field fight figure
    fill film find fine finger finish fire first fish fit five flat floor flow flower fly follow food foot for force
    forest form forward found four free fresh friend from front fruit full fun function game garden gas gather gave
    gentle get girl give glad glass go gold gone good got govern grand grass gray great green grew ground group grow
    guess guide gun hair half hand happy hard has hat have he head hear heart heat heavy help her here high hill him his
    history hit hold hole home hope horse hot hour house how huge human hundred hunt hurry ice idea if imagine in inch
    include industry insect instant into invent iron is island it job join joy jump just keep key kill kind king knew
    know lady lake land language large last late laugh law lay lead learn least leave left leg length less let letter
    level lie life lift light like line liquid list listen little live locate log long look lost lot loud love low
    machine made magnet main major make man many map mark market mass master match material matter may me mean meant
    measure meat meet melody men metal method middle might mile milk million mind mine minute miss mix modern molecule
    moment money month moon more morning most mother motion mount mountain mouth move much multiply music must my name
    nation natural nature near neck need neighbor never new next night nine no noise none noon nor north nose note
    nothing notice noun now number object ocean of off office often oh oil old on once one only open operate opposite or
    order organ other our out over own oxygen page paint pair paper paragraph parent part party pass past path pattern
    pay people perhaps period person phrase pick picture piece place plain plan planet plant play please plural poem
    point poor port pose position possible post pound power practice present press pretty print probable problem process
    product proper protect prove provide pull push put quart queen question quick quiet quite race radio rail rain raise
    ran range rather reach read ready real reason receive record red region remember repeat reply represent require rest
    result rich ride right ring rise river road rock roll room root rope rose round row rub rule run safe said sail salt
    same sand sat save saw say scale school science score sea search season seat second section see seed seem segment
    select self sell send sense sentence separate serve set settle seven several shall shape share sharp she sheet shell
    shine ship shoe shop shore short should shoulder shout show side sight sign silent silver similar simple since sing
    single sister sit six size skill skin sky sleep slip slow small smell smile snow so soft soil soldier solution solve
    some son song soon sort sound south space speak special speech speed spell spend spoke spot spread spring square
    stand star start state station stay stead steam steel step stick still stone stood stop store story straight strange
    stream street stretch string strong student study subject substance success such sudden suffix sugar suggest suit
    sum summer sun supply support sure surface surprise swim syllable symbol system table tail take talk tall teach team
    teeth tell temperature ten term test than thank that the their them then there these they thick thin thing think
    third this those though thought thousand three through throw thus tie time tiny to together told tone too tool top
    total touch toward town track trade train translate travel tree triangle trip trouble truck true try tube turn
    twenty two type under unit until up us use usual valley value vary verb very view village visit voice vowel wait
    walk wall want war warm was wash watch water wave way we wear weather week weight well went were west what wheel
    when where whether which while white who whole whose why wide wife wild will win wind window wing winter wire wish
    with woman women wonder wood word work world would write written wrong yard year yellow yes yet you young""".split()  # noqa: SIM905
)
_OPENERS = (
    "What is the {}", "Who {}", "Why is {}", "How do I {}", "Write a {}", "Explain {}", "Which {}", "Tell me about {}",
    "Translate {}", "Is {}", "Can you {}", "List {}", "Name a {}", "Describe {}", "Give {}", "Where is {}",
)  # fmt: skip
_INSERTED = (
    "not", "twice", "minus", "plus", "times", "half", "second", "even", "odd", "except", "then", "and", "or", "double",
    "without", "mod", "squared", "of", "by", "downwards", "please", "backwards", "each", "tenth", "per", "negative",
)  # fmt: skip


def outside_task(random: Random) -> tuple[str, list[str]]:
    """An input that is outside the world, and candidates for it."""
    make = random.choices((_sentence, _asked, _code, _gibberish, _calculation, _near), (3, 4, 1.5, 1.5, 2, 6))[0]
    x = make(random)
    return x, [_candidate(random) for _ in range(random.randint(2, 6))]


def _words(random: Random, low: int, high: int) -> list[str]:
    return [
        random.choice(_WORDS) if random.random() < 0.94 else _token(random) for _ in range(random.randint(low, high))
    ]


def _token(random: Random) -> str:
    kinds: tuple[Callable[[], str], ...] = (
        lambda: str(random.randint(0, 9999)),
        lambda: "".join(random.choices("abcdefghijklmnopqrstuvwxyzäöüéñçß", k=random.randint(2, 12))),
        lambda: "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=random.randint(1, 8))),
        lambda: random.choice(("->", "=", "%", "&", "(", ")", "[x]", "*", "<", ">", ":", "/", "€", "$", "—", "…", "#")),
        lambda: "".join(random.choices("один два三四五мир世界ελλάδα", k=random.randint(1, 8))),
    )
    return random.choice(kinds)()


def _sentence(random: Random, most: int = 25) -> str:
    words = _words(random, 2, most)
    if random.random() < 0.5:
        words[0] = words[0].capitalize()
    if random.random() < 0.3:
        words.insert(random.randrange(len(words)), random.choice((",", ";", "\n", "-", '"')))
    return " ".join(words) + random.choice(("", ".", "?", "!", ":"))


def _asked(random: Random) -> str:
    return random.choice(_OPENERS).format(" ".join(_words(random, 1, 10))) + random.choice(("?", "?", ".", ""))


def _code(random: Random) -> str:
    a, b, c = (random.choice(_WORDS) for _ in range(3))
    forms = (
        f"def {a}({b}):\n    return {b} + {random.randint(0, 99)}",
        f"for {a} in {b}: print({c})",
        f"if ({a} == {random.randint(0, 9)}) {{ {b}(); }}",
        f"{a} = [{', '.join(str(random.randint(0, 99)) for _ in range(random.randint(2, 5)))}]; sort({a})",
        f"What does {a}({b}[{random.randint(0, 9)}]) return?",
    )
    return random.choice(forms)


def _gibberish(random: Random) -> str:
    return " ".join(_token(random) for _ in range(random.randint(1, 8)))


def _calculation(random: Random) -> str:
    a, b, c = (random.randint(0, random.choice((9, 99, 999))) for _ in range(3))
    forms = (
        f"{a}*{b}?", f"What is {a} x {b}?", f"{a}/{b}?", f"{a} times {b}?", f"{a}.{b}+{c}?", f"({a}+{b})*{c}?",
        f"Is {a} prime?", f"-{a}+{b}?", f"{a}+{b}={c}?", f"{a}^{b}?", f"Is {a} larger than {b}?", f"{a}, {b}, {c}",
        f"{a}+{b}+{c}?", f"{a}-{b}+{c}?", f"Multiply {a} and {b}.", f"Divide {a} by {b}.", f"Round {a}.{b}.",
    )  # fmt: skip
    return random.choice(forms)


def _near(random: Random) -> str:
    """A question of the world, spoiled: a word too many, a part gone, two in one."""
    how = random.randrange(7)
    x = make_question(random, random.choice(DEBATED) if how in (3, 5) else None).x  # a shorter sum of names is one
    pieces = x[:-1].replace("+", " + ").replace("-", " - ").split()
    match how:
        case 0 | 1:
            pieces.insert(random.randint(0, len(pieces)), random.choice(_INSERTED))
        case 2:
            pieces.insert(random.randint(0, len(pieces)), random.choice(_WORDS))
        case 3:
            pieces = pieces[: max(1, len(pieces) - random.randint(1, 2))]
            if pieces[-1].isdigit() and pieces[0] in ("Sort", "Largest"):
                pieces.append("and")
        case 4:
            other = make_question(random).x
            return f"{x} {other}" if random.random() < 0.5 else f"{x[:-1]} {random.choice(_INSERTED)} {other}"
        case 5:
            places = [n for n, piece in enumerate(pieces) if piece.isalpha()] or [0]
            pieces[random.choice(places)] = random.choice(_WORDS).capitalize()
        case _:
            signs = [n for n, piece in enumerate(pieces) if piece in "+-"] or [len(pieces) - 1]
            pieces[random.choice(signs)] = random.choice(("*", "/", "^", "%", "<", "or", "x", ":", "and"))
    spoiled = " ".join(pieces) + x[-1]
    return spoiled.replace(" + ", "+").replace(" - ", "-") if random.random() < 0.5 else spoiled


def _candidate(random: Random) -> str:
    kind = random.random()
    if kind < 0.35:
        return random.choice(("{}", "It is {}.", "{}.", "Answer {}.")).format(random.randint(0, 200))
    if kind < 0.5:
        return random.choice(_WORDS).capitalize() + random.choice(("", "."))
    return _sentence(random, 12)
