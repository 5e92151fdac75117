"""Logging of a process: one JSON object per line on standard error, or readable lines on a terminal.

Owns the one global configuration of structlog; each ``*_main`` calls ``set_up_logs`` once, first. The access log does
not pass through here: ``control.access_log`` has its own stream.
"""

import logging
import sys
from typing import Any

import orjson
import structlog

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
LEVELS = tuple(_LEVELS)


def set_up_logs(process: str, level: str = "info") -> None:
    """Log lines of this process carry ``process``; those below ``level`` are not made at all."""
    readable = sys.stderr.isatty()
    renderer: Any = structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer(_to_json)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.StackInfoRenderer(),
            *([] if readable else [structlog.processors.format_exc_info]),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)
    # Libraries log through the standard library; only what is wrong matters here.
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s", force=True
    )


def _to_json(event: Any, **_: Any) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
