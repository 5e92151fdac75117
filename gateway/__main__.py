"""``python -m gateway`` is ``quantgate``."""

from gateway.cli import main

main()
