"""The names of `debate.testing.fake_server`, until every test imports them from there."""

from debate.testing.fake_server import DIE as DIE
from debate.testing.fake_server import DRIP as DRIP
from debate.testing.fake_server import HANG as HANG
from debate.testing.fake_server import RESET as RESET
from debate.testing.fake_server import Behavior, judgment
from debate.testing.fake_server import FakeServer as FakeServer
from debate.testing.fake_server import Reply as Reply
from debate.testing.fake_server import Request as Request
from debate.testing.fake_server import completion as completion
from debate.testing.fake_server import every as every
from debate.testing.fake_server import failing as failing
from debate.testing.fake_server import first as first
from debate.testing.fake_server import form_of as form_of
from debate.testing.fake_server import from_the as from_the
from debate.testing.fake_server import only as only
from debate.testing.fake_server import properly as properly

Behaviour = Behavior
judgement = judgment
