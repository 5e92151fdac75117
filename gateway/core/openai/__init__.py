"""Requests of the OpenAI-compatible surface, read from bytes: ``api_of`` names the API, ``read`` makes its ``Reading``.

- ``paths``                  which API a method and path mean
- ``read``                   the one entrance, which asks the module of the shape
- ``chat``, ``responses``, ``messages``   conversations, with ``dialogue``, ``content`` and ``tools`` in common
- ``inputs``, ``audio``      prompts that are no conversation; forms (``form``) and speech
- ``output``                 what a request says about its output
- ``parse``, ``fields``      JSON rules that hold for all of them; typed access that names the offending field
- ``gather``                 bounded slices of text and the conversation digest

Nothing here changes a body: the bytes that arrive are the bytes that are forwarded (edits are ``gateway.core.edit``).
"""

from gateway.core.openai.paths import allowed_method, api_of
from gateway.core.openai.read import read

__all__ = ["allowed_method", "api_of", "read"]
