"""Tasks outside the judge's world that are measured with: families of texts that no training saw.

`OUTSIDE` has nothing of the world; `NEAR` has its words in another structure, and none of those that `outside.py`
makes. A family is some forms with slots and the candidates that fit them. Everything follows from the random generator
that is passed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from random import Random
from string import Formatter

from judging.facts import draw_name

Words = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Family:
    """Texts of one kind."""

    name: str
    forms: tuple[str, ...]
    """Inputs. A slot `{city}` is filled from `words`, the same in the form and in the candidates."""
    candidates: tuple[str, ...]
    words: Words = field(default_factory=dict[str, Sequence[str]])

    def draw(self, random: Random) -> tuple[str, list[str]]:
        """An input, and two to six different candidates for it."""
        form = random.choice(self.forms)
        slots = {name for text in (form, *self.candidates) for _, name, _, _ in Formatter().parse(text) if name}
        filled = {name: self._word(random, name) for name in sorted(slots)}
        texts = list(dict.fromkeys(text.format(**filled) for text in self.candidates))
        return form.format(**filled), random.sample(texts, random.randint(2, min(6, len(texts))))

    def _word(self, random: Random, name: str) -> str:
        if name in self.words:
            return random.choice(self.words[name])
        if name.startswith("name"):
            return draw_name(random)
        low, high = {"d": (0, 9), "n": (10, 99), "l": (100, 999), "y": (1500, 2020)}[name[0]]
        return str(random.randint(low, high))


def draw(random: Random, families: Sequence[Family], n: int) -> list[tuple[str, str, list[str]]]:
    """Name of the family, input and candidates; the families take turns, and no input comes twice."""
    found: dict[str, tuple[str, str, list[str]]] = {}
    for family in cycle(families):
        x, candidates = family.draw(random)
        found.setdefault(x, (family.name, x, candidates))
        if len(found) == n:
            break
    return list(found.values())


_COUNTRIES = ("Peru", "Norway", "Kenya", "Vietnam", "Chile", "Hungary", "Morocco", "Canada", "Portugal", "Nepal")
_CITIES = ("Lima", "Oslo", "Nairobi", "Hanoi", "Santiago", "Budapest", "Rabat", "Ottawa", "Lisbon", "Kathmandu")
_PEOPLE = ("Anna", "Boris", "Chidi", "Daniela", "Emre", "Farah", "Goro", "Helga", "Ines", "Jakob")
_FOODS = ("lentils", "rice", "pancakes", "goulash", "focaccia", "ratatouille", "dumplings", "granola")
_METALS = ("sodium", "copper", "zinc", "lithium", "magnesium", "aluminum", "potassium", "nickel")
_TABLES = ("orders", "invoices", "patients", "flights", "tickets", "employees")

OUTSIDE = (
    Family(
        "capitals",
        ("What is the capital of {country}?", "Which currency do people pay with in {country}?",
         "Name two neighbors of {country} and the longest border among them."),
        ("{city}", "It is {city}, since {y}.", "I believe {city}.", "None of its cities.", "{city2}"),
        {"country": _COUNTRIES, "city": _CITIES, "city2": _CITIES},
    ),
    Family(
        "sql",
        ("SELECT COUNT(*) FROM {table} WHERE amount > {l}; what does it give when the table is empty?",
         "Write a query for the newest {n} rows of {table}.", "Why is JOIN {table} ON id slow without an index?"),
        ("0", "SELECT * FROM {table} ORDER BY created_at DESC LIMIT {n};", "It scans {table} row by row.", "NULL",
         "An error, because {table} is locked."),
        {"table": _TABLES},
    ),
    Family(
        "chemistry",
        ("How many protons has {metal}?", "Balance: {metal} and chlorine react to a chloride.",
         "At which temperature does {metal} melt, in kelvin?"),
        ("{d}", "{n}", "{l} K", "2 atoms on the left, 2 on the right.", "{metal} does not react."),
        {"metal": _METALS},
    ),
    Family(
        "mail",
        ("Dear {person}, your parcel {l} is delayed. Could you let us know whether {day} suits you? Reply politely.",
         "Draft an email to {person} that moves our appointment to {day} at {d} pm.",
         "Shorten this message: Hi {person}, I just wanted to kindly check in about the offer from {day}."),
        ("Hello, {day} is fine. Best, {person}", "Dear {person}, thank you, I shall be at home.", "No.",
         "Subject: new date\n\nDear {person}, may we meet on {day}?"),
        {"person": _PEOPLE, "day": ("Monday", "Thursday", "Saturday", "Friday")},
    ),
    Family(
        "weekdays",
        ("Which weekday was {month} {d1}, {y}?", "How many days lie between {month} {d1} and the end of {y}?",
         "If today is the {d1}th of {month}, what date is it in six weeks?"),
        ("Wednesday", "A Sunday.", "{n} days", "{month} {n}", "It depends on leap years."),
        {"month": ("January", "March", "June", "August", "October", "December"), "d1": ("4", "7", "11", "19", "26")},
    ),
    Family(
        "units",
        ("Convert {n} miles to kilometers.", "{l} grams in ounces?", "How many cups are {n} milliliters?",
         "Express {n} °F in °C."),
        ("{n2}", "{n2} km", "About {d}.{d2}", "{l}", "{n2} °C"),
    ),
    Family(
        "percentages",
        ("A coat costs {l} dollars and is reduced by {n} percent. What does {person} pay?",
         "{person} leaves a tip of {n} percent on a bill of {l} dollars. How much is the tip?",
         "Rents rose from {l} to {l2} euros; by how many percent?"),
        ("{n2}", "{l2} dollars", "{n2} %", "It is {l}.", "{n2}.50"),
        {"person": _PEOPLE},
    ),
    Family(
        "german",
        ("Wie viele Einwohner hat {city} ungefähr?", "Schreibe einen Satz mit den Wörtern Regen und {city}.",
         "Warum ist der Himmel über {city} blau, und seit wann weiß man das?"),
        ("Etwa {l} Tausend.", "In {city} fällt heute Regen.", "Wegen der Streuung des Lichts.", "Seit {y}.", "{n}"),
        {"city": _CITIES},
    ),
    Family(
        "french",
        ("Quelle est la distance entre {city} et {city2} ?",
         "Conjuguez le verbe finir au futur, puis parlez de {city}.",
         "Combien coûte un billet de train pour {city} ?"),
        ("{l} kilomètres.", "Je finirai, tu finiras, il finira.", "Environ {n} euros.", "Je ne sais pas.", "{l}"),
        {"city": _CITIES, "city2": _CITIES},
    ),
    Family(
        "spanish",
        ("¿Quién escribió la novela que {person} leyó en {y}?", "¿Cuántos años tenía {person} cuando llegó a {city}?",
         "Traduce al inglés: la casa de {person} está lejos de {city}."),
        ("Tenía {n} años.", "{person}'s house is far from {city}.", "Una autora de {city}.", "{n}", "Nadie lo sabe."),
        {"person": _PEOPLE, "city": _CITIES},
    ),
    Family(
        "haikus",
        ("Compose a haiku about {thing} in {season}.", "Finish this haiku: {season} dusk, {thing} and silence ..."),
        ("{season} comes softly / {thing} under pale moonlight / nobody hears it", "A frog jumps again.",
         "{thing}, {thing}, {thing}, o {season}.", "5-7-5"),
        {"thing": ("lanterns", "moss", "a heron", "old bicycles", "dew"), "season": ("Autumn", "Spring", "Winter")},
    ),
    Family(
        "json",
        ('{{"user": "{person}", "age": {n}, "tags": ["a", "b"]}} - which key holds a list?',
         'Is {{"total": {l}, "items": [}} valid JSON?', 'Turn into YAML: {{"city": "{city}", "zip": {l}}}'),
        ("tags", "user", "No, a bracket is open.", "city: {city}\nzip: {l}", "{n}", "Yes."),
        {"person": _PEOPLE, "city": _CITIES},
    ),
    Family(
        "urls",
        ("Which port does https://shop.example.com:{l}/cart?id={n} use?",
         "What is the query string of http://example.org/{table}/{l}?page={d}#top",
         "Does ftp://files.example.net/{table}.zip resolve over TLS?"),
        ("{l}", "443", "page={d}", "/{table}/{l}", "No.", "It redirects."),
        {"table": _TABLES},
    ),
    Family(
        "riddles",
        ("I have {n} keys but open no door. What am I?", "What gets wetter the longer it dries {person}?",
         "The more of them {person} takes, the more are left behind. What are they?"),
        ("A piano.", "A towel.", "Footsteps.", "An echo.", "Time.", "{n}"),
        {"person": _PEOPLE},
    ),
    Family(
        "recipes",
        ("How long should {food} simmer for {d} guests?", "I have no eggs; can I still make {food}?",
         "Give me the ingredients of {food} with amounts in grams."),
        ("{n} minutes.", "{l} g flour, {n} g butter, salt.", "Yes, use applesauce.", "Until they are soft.", "{n}"),
        {"food": _FOODS},
    ),
    Family(
        "law",
        ("Can {person} be sued in {country} after {d} years?", "What does habeas corpus mean for {person}?",
         "Which court of {country} hears appeals about inheritance?"),
        ("Yes, within {d} years.", "No, the claim is barred.", "The supreme court of {country}.", "Ask a lawyer.",
         "{n}"),
        {"person": _PEOPLE, "country": _COUNTRIES},
    ),
    Family(
        "clauses",
        ("Section {d}.{d2}: The tenant shall notify the landlord within {n} days of any damage. Who must notify whom?",
         "Section {d}.{d2}: Liability is limited to {l} euros unless caused by gross negligence. What is the limit?",
         "This agreement ends on {y} unless renewed in writing by {person}. Is oral renewal enough?"),
        ("The tenant notifies the landlord.", "{l} euros", "{n} days", "No, it must be written.", "{person}"),
        {"person": _PEOPLE},
    ),
    Family(
        "poems",
        ("Which meter has the line 'O {thing}, thou lonely keeper of {city}'?",
         "Write four rhyming lines about {thing} near {city}.", "Who is the speaker of the ode to {thing} of {y}?"),
        ("Iambic pentameter.", "Roses by {thing}, a song by the sea.", "The poet's child.", "It is a trochee.", "{d}"),
        {"thing": ("lighthouse", "nightingale", "willow", "harbor", "comet"), "city": _CITIES},
    ),
    Family(
        "shell",
        ("grep -c error /var/log/{table}.log | head -{n}",
         "How do I delete all *.tmp under ~/{table} older than {n} days?",
         "What does chmod {l} {table}.sh do?"),
        ("find ~/{table} -name '*.tmp' -mtime +{n} -delete", "It prints a count.", "{l}", "rm -rf /",
         "Permission denied"),
        {"table": _TABLES},
    ),
    Family(
        "word problems",
        ("{person} has {n} marbles and gives {d} of them to each of two friends. How many are left?",
         "A train leaves {city} at {d} am with {n} km/h; when has it gone {l} km?",
         "{person} is {d} years older than her brother, and together they are {n}. How old is he?"),
        ("{n2}", "It is {n2}.", "{d2}", "After {d2} hours.", "Answer {n2}."),
        {"person": _PEOPLE, "city": _CITIES},
    ),
    Family(
        "years",
        ("When did the {event} of {city} take place?", "In which year was the {event} in {country} abolished?",
         "{person} the Elder: born in {y}, crowned when?"),
        ("{y}", "In {y2}.", "{y2}", "It is {y}.", "Nobody wrote it down."),
        {"event": ("siege", "great fire", "flood", "treaty", "salt tax"), "city": _CITIES, "country": _COUNTRIES,
         "person": _PEOPLE},
    ),
    Family(
        "comparisons",
        ("Which phone lasts longer, the {brand} {d} or the {brand2} {n}?", "Tea or coffee before a marathon in {city}?",
         "Is a {brand} tractor better than a {brand2} one on wet clay?"),
        ("The {brand}.", "The {brand2}, by {d} hours.", "Both alike.", "Neither, I would say.", "{n}"),
        {"brand": ("Alto", "Bravura", "Corvid"), "brand2": ("Dorado", "Estival", "Fjordia"), "city": _CITIES},
    ),
    Family(
        "medicine",
        ("My knee hurts since {day}; should I see {person}, who is a doctor?",
         "How many milligrams of vitamin C does {food} contain?", "Is a pulse of {n} normal while asleep?"),
        ("See a doctor.", "{n} mg", "It is normal.", "{n}", "Rest and ice for {d} days."),
        {"day": ("Tuesday", "last week", "the summer"), "person": _PEOPLE, "food": _FOODS},
    ),
    Family(
        "html",
        ("<div class='{table}'><p>{n}</p></div> - how is the paragraph made {color}?",
         "Center a button in a flexbox {n} pixels wide.",
          "a {{ color: {color}; margin: {d}px }} - what is the margin?"),
        (".{table} p {{ color: {color} }}", "justify-content: center", "{d}px", "{d}", "It is {n}.", "With a table."),
        {"table": _TABLES, "color": ("crimson", "teal", "orchid")},
    ),
    Family(
        "chess",
        ("White plays {move} on move {d}. What should Black answer?",
         "How many squares can a bishop reach from {square}?",
         "Is {move} followed by mate in {d} possible?"),
        ("Nf6", "{n}", "e5, with equality.", "{d}", "Yes, by a queen sacrifice.", "Resign."),
        {"move": ("Qh5", "Bb5+", "O-O", "Rxd7"), "square": ("d4", "a1", "g7")},
    ),
    Family(
        "reviews",
        ("Is this review positive? 'The soup at {person}'s was cold, and we waited {n} minutes.'",
         "Rate the tone: 'Honestly, {city} exceeded everything I had hoped for!'",
         "Summarize: Guests praise the {food} at {person}'s but criticize the parking."),
        ("Negative.", "Positive", "{d} of 10", "Good {food}, bad parking.", "{d}"),
        {"person": _PEOPLE, "city": _CITIES, "food": _FOODS},
    ),
)  # fmt: skip
"""Nothing of the world."""

_NUMBERS = ("{n}", "It is {n}.", "{d}", "Answer {l}.", "{n2}.", "Maybe {d2}?")
_ROWS = ("{d1} {d2} {d3}", "It is {d3} {d1} {d2}.", "{d2}.", "Answer {d1}.", "none")
_COLORS = {name: ("red", "blue", "green", "pink", "gray", "gold") for name in ("color", "color2", "color3")}
_SPELLED = {"one": ("three", "eleven", "twenty", "forty-two"), "two": ("five", "nine", "thirteen", "sixty")}
_ROMAN = {"one": ("XII", "IV", "IX", "XXI", "XL"), "two": ("VI", "III", "XV", "LX")}

NEAR = (
    Family("smallest", ("Smallest of {n1} {n2} {n3}?", "Least of {d1} {d2} {d3} {d4}?"), _NUMBERS),
    Family("statistics", ("Median of {n1} {n2} {n3}?", "Average of {d1} {d2} {d3}?",
           "Mode of {d1} {d2} {d1} {d3}?"), _NUMBERS),
    Family("gaps", ("Largest gap in {n1} {n2} {n3}?", "Largest sum of neighbors in {d1} {d2} {d3} {d4}?"), _NUMBERS),
    Family("missing addend", ("{n1}+?={l}", "What plus {n1} gives {l}?", "{l} is {n1} more than what?"), _NUMBERS),
    Family("digit sums", ("What is the digit sum of {l}?", "Add the digits of {l}.", "Reverse the digits of {l}."),
           _NUMBERS),
    Family("number words", ("Add {one} and {two}.", "Take {two} from {one} hundred.", "{one} minus {two}?"),
           _NUMBERS, _SPELLED),
    Family("roman", ("Add {one} and {two}.", "What is {one} - {two}?", "Write {n} in Roman numerals."),
           (*_NUMBERS, "XVI", "IX"), _ROMAN),
    Family("hexadecimal", ("Add 0x{n1} and 0x{n2}.", "0b101+{d}?", "What is 0x{n1} + {n2}?"), _NUMBERS),
    Family("odd ones", ("Which is odd: {d1} {d2} {d3}?", "Which of {n1} {n2} {n3} ends in {d}?"), _NUMBERS),
    Family("sequences", ("What comes after {d1} {d2} {d3}?", "Continue {n1} {n2} {n3} ...",
           "Next in {d1}, {d1}, {d2}, {d2}?"), _NUMBERS),
    Family("nested", ("Add {n1} to the largest of {d1} {d2} {d3}.", "Take the largest of {d1} {d2} from {n1}."),
           _NUMBERS),
    Family("rows changed", ("Remove {d1} from {d2} {d1} {d3}.", "Swap {d1} and {d2} in {d1} {d3} {d2}.",
                            "Put {d1} in front of {d2} {d3}."), _ROWS),
    Family("places", ("What stands first in {d1} {d2} {d3}?", "Last of {d1} {d2} {d3} {d4}?",
           "Middle of {n1} {n2} {n3}?"), _NUMBERS),
    Family("sort by", ("Sort {n1} {n2} {n3} by last digit.", "Sort {d1} {d2} {d3} from high to low.",
                       "Is {d1} {d2} {d3} sorted?"), (*_ROWS, "Yes.", "No.")),
    Family("sort words", ("Sort {color} {color2} {color3}.", "Sort {name1} {name2} {name3} by length."),
           ("{color} {color2} {color3}", "{color3} {color} {color2}", "It is {color2} {color}.", "{d} {d2}"), _COLORS),
    Family("largest thing", ("Largest of {city} {city2} {city3}?", "Largest of {color} {color2}?"),
           ("{city}", "It is {city2}.", "{city3}.", "{n}", "{color}"),
           {"city": _CITIES, "city2": _CITIES, "city3": _CITIES, **_COLORS}),
    Family("clock", ("Add {n1} minutes to {d}:30.", "Take {d} hours from {d2}:45.", "What is {d}:15 + {d2}:50?"),
           _NUMBERS),
    Family("percent", ("Take {d}% from {l}.", "Add {n1}% to {l}.", "What is {n1}% of {l}?"), _NUMBERS),
    Family("things", ("Add {d} apples and {d2} pears.", "{d} {color} balls + {d2} {color2} balls?",
           "Take {d} eggs from a dozen."), _NUMBERS, _COLORS),
    Family("letters", ("Count vowels in {color} {color2}.", "Common letters of {color} and {color2}?",
                       "Count letters of {name1}."), (*_NUMBERS, "e", "none"), _COLORS),
    Family("names asked about", ("Who is {name1}?", "Define {name1}.", "Spell {name1} backwards for {name2}.",
                                 "Is {name1} the same as {name2}?"), (*_NUMBERS, "{name2}", "Yes.")),
    Family("names compared", ("Does {name1} exceed {name2}?", "Which is larger, {name1} or {name2}?",
                              "Why is {name1} {d}?"), (*_NUMBERS, "{name1}", "{name2}.", "No.")),
    Family("halves", ("Half of {n1}?", "Double {n1}.", "A third of {l}?", "Square {n1}."), _NUMBERS),
    Family("remainders", ("Remainder of {l} by {d1}?", "Does {d1} divide {l}?", "Factors of {n1}?"),
           (*_NUMBERS, "Yes.", "No.")),
    Family("ranges", ("List the numbers from {d} to {n1}.", "Count to {n1} in steps of {d}.",
                      "How many numbers lie between {n1} and {l}?"), (*_NUMBERS, *_ROWS)),
    Family("checks", ("Is {n1}+{n2} more than {l}?", "True or false, {n1}-{d} is {n2}.",
                      "Check that {n1}+{n2} equals {n2}+{n1}."), (*_NUMBERS, "True", "No.")),
)  # fmt: skip
"""The world's words in another structure."""
