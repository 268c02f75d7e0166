"""What the run store and the memory store share: connections, column types, migrations. Loads SQLAlchemy."""
