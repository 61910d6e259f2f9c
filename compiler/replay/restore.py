"""One function for each kind of thing that a call can change: puts it back, and tells whether it had changed.

For `world`, which remembers what was there.  An object counts as changed where it is another one, not where it is unequal:
comparing would run the user's code.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from types import CellType
from typing import Any

from dynascope.compiler.replay import states

#: stands for a name, or a cell's content, that is not there
ABSENT = object()


def content_of(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return ABSENT


def _same(now: dict[str, Any], before: dict[str, Any]) -> bool:
    return now.keys() == before.keys() and all(now[k] is v for k, v in before.items())


def _base(container: Any) -> Any:
    """The built-in class of a container: its methods are called, not the user's."""
    return next(c for c in (OrderedDict, dict, list, set, deque) if isinstance(container, c))


def contents_of(container: Any) -> list[Any]:
    base = _base(container)
    items: Iterator[Any] = base.items(container) if isinstance(container, dict) else base.__iter__(container)
    return list(items)


def refill(container: Any, contents: list[Any]) -> bool:
    """Give a list, deque, set or dict its contents again; untouched, and False, where they are the same objects."""
    base, now = _base(container), contents_of(container)
    if isinstance(container, dict):
        if [(id(k), id(v)) for k, v in now] == [(id(k), id(v)) for k, v in contents]:
            return False
        base.clear(container)
        for key, value in contents:
            base.__setitem__(container, key, value)
    elif isinstance(container, set):
        if set(map(id, now)) == set(map(id, contents)):
            return False
        set.clear(container)
        set.update(container, contents)
    else:
        if list(map(id, now)) == list(map(id, contents)):
            return False
        base.clear(container)
        base.extend(container, contents)
    return True


def put_attributes(owner: Any, attributes: dict[str, Any]) -> bool:
    current = states.attributes_of(owner)
    if current is None or _same(current, attributes):
        return False
    current.clear()
    current.update(attributes)
    return True


def put_content(cell: CellType, content: Any) -> bool:
    if content_of(cell) is content:
        return False
    if content is ABSENT:
        del cell.cell_contents
    else:
        cell.cell_contents = content
    return True


def put_name(namespace: dict[str, Any], name: str, value: Any) -> bool:
    if namespace.get(name, ABSENT) is value:
        return False
    if value is ABSENT:
        del namespace[name]
    else:
        namespace[name] = value
    return True


def put_gradient(tensor: Any, gradient: Any) -> bool:
    if tensor.grad is gradient:
        return False
    tensor.grad = gradient
    return True
