"""``GET /v1/models`` from the policy: what this caller may name. No pool is asked, so none can spoil the list."""

from urllib.parse import unquote

import orjson

from gateway.core.classify import visible_names
from gateway.errors import ApiError
from gateway.model.table import Table, Tenant

CREATED = 1_700_000_000  # a fixed date: the field is required, and a changing one would defeat caches


def visible(table: Table, tenant: Tenant) -> dict[str, tuple[str, str | None]]:
    """Names this tenant may use: models, aliases and adapters → (model, adapter)."""
    return {name: table.names[name] for name in visible_names(table, tenant)}


def listing(table: Table, tenant: Tenant) -> bytes:
    """The list as OpenAI shapes it."""
    data = [_entry(table, name, target) for name, target in sorted(visible(table, tenant).items())]
    return orjson.dumps({"object": "list", "data": data})


def one(table: Table, tenant: Tenant, name: str) -> bytes:
    """One entry by name, in either spelling of its special characters; 404 if the caller may not use it."""
    names = visible(table, tenant)
    wanted = name if name in names else unquote(name)
    target = names.get(wanted)
    if target is None:
        raise ApiError(404, "model_not_found", f"The model '{wanted}' does not exist or you do not have access to it.")
    return orjson.dumps(_entry(table, wanted, target))


def _entry(table: Table, name: str, target: tuple[str, str | None]) -> dict[str, object]:
    model, adapter = target
    entry: dict[str, object] = {"id": name, "object": "model", "created": CREATED, "owned_by": "quantgate"}
    window = table.models[model].context_window
    if window is not None:
        entry["max_model_len"] = window
    if adapter is not None:
        entry["parent"] = model
    elif name != model:
        entry["root"] = model
    return entry
