"""The transition table as a Mermaid state diagram, for the documentation. A test holds the page to it."""

from gateway.core.rollout.states import State
from gateway.core.rollout.table import TABLE, Move, To

_BACK = (State.PENDING, State.SHADOWING, State.STEPPING, State.PROMOTED)


def mermaid() -> str:
    """The diagram: one arrow per pair of states, labelled with the events that lead along it."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for state, cells in TABLE.items():
        for kind, cell in cells.items():
            for move in cell:
                for target in _targets(state, move):
                    label = f"{kind.value} ({move.when.value})" if move.when.value else kind.value
                    labels = arrows.setdefault((state.value, target), [])
                    if label not in labels:
                        labels.append(label)
    lines = ["stateDiagram-v2", "    [*] --> pending"]
    lines += [f"    {origin} --> {target}: {', '.join(labels)}" for (origin, target), labels in arrows.items()]
    return "\n".join(lines)


def _targets(state: State, move: Move) -> tuple[str, ...]:
    match move.to:
        case To.STAY | To.NOTE:
            return ()
        case To.STAGE:
            return (State.SHADOWING.value, State.STEPPING.value)
        case To.NEXT:
            if state is State.SHADOWING:
                return (State.SHADOWING.value, State.STEPPING.value, State.PROMOTED.value)
            return (State.STEPPING.value, State.PROMOTED.value)
        case To.BACK:
            return tuple(target.value for target in _BACK)
        case _:
            return (move.to.value,)
