"""How memories are recalled: request, search, ranking, and the collections held in memory for it."""
