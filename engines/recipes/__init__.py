"""Other recipes as tools: how they are pinned, and the engine that answers their calls."""
