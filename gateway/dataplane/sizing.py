"""How many tokens a prompt has, per model: tokenizers and what the runtimes' usage has taught about them."""

from gateway.dataplane.exchange import Exchange
from gateway.model.facts import Reading
from gateway.model.table import Table


class Sizing:
    def prepare(self, table: Table) -> None: ...
    def adopt(self, table: Table) -> None: ...
    def prompt_tokens(self, table: Table, model: str, reading: Reading) -> int:
        return reading.facts.text_bytes // 4 + 4

    def learn(self, exchange: Exchange, reported: int) -> None: ...
