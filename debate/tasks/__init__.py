"""What tasks are made of: score components, conversations. Knows neither tasks nor prompts."""
