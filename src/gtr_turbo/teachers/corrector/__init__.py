"""GTR's corrector: a model behind an OpenAI-compatible API that repairs the agent's thoughts."""

from gtr_turbo.teachers.corrector.asking import check_client
from gtr_turbo.teachers.corrector.corrector import Correction, Corrector

__all__ = ["Correction", "Corrector", "check_client"]
