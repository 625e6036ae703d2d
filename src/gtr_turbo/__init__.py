"""GTR-Turbo: a vision-language agent trained with a merged checkpoint of itself as the teacher."""

__version__ = "0.1.0"
