"""Where runs are kept: a SQL database, SQLite by default, PostgreSQL for teams. Loads SQLAlchemy."""

from debate.store.reply_cache import ReplyCache
from debate.store.run import StoredRun
from debate.store.store import Store

__all__ = ["ReplyCache", "Store", "StoredRun"]
