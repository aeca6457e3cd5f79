"""Which tools a job is offered when the recipe asks for a draw: one sampler a file."""
