"""The base of the configuration's parts."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of the configuration's parts: frozen, unknown keys refused, field texts are help."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )
