"""Requests of the OpenAI-compatible surface, read from bytes: ``api_of`` names the API, ``read`` makes its ``Reading``.

One module per shape (``chat``, ``responses``, ``messages`` …). ``parse`` owns the JSON rules that hold for all of them,
``fields`` the typed access that names the offending field, ``gather`` the bounded slices and the conversation digest.
Nothing here changes a body: the bytes that arrive are the bytes that are forwarded (edits are ``gateway.core.edit``).
"""

from gateway.core.openai.paths import allowed_method, api_of
from gateway.core.openai.read import read

__all__ = ["allowed_method", "api_of", "read"]
