# SPDX-License-Identifier: Apache-2.0
"""Substitutions of launch files: ``$(var x)`` and the like."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import LaunchError
from . import packages

__all__ = ["Scope", "is_true", "substitute"]

# Longer than any value or parameter file; a `let` that doubles a value ends here.
_MOST_CHARACTERS = 1_000_000
_MOST_EXPRESSION = 500
_NAME = re.compile(r"[A-Za-z][\w-]*")


@dataclass
class Scope:
    """What substitutions can refer to."""

    file: Path
    variables: dict[str, str] = field(default_factory=dict)


def is_true(text: str) -> bool:
    """Return the truth of a condition's text.

    Raises
    ------
    LaunchError
        If it is neither true nor false.
    """
    value = text.strip().lower()
    if value in ("true", "1"):
        return True
    if value in ("false", "0"):
        return False
    raise LaunchError(f"condition {text!r} is neither 'true' nor 'false'.")


def substitute(text: str, scope: Scope) -> str:
    r"""Return a text with its substitutions replaced; ``\$(`` stands for a literal ``$(``.

    Raises
    ------
    LaunchError
        If a substitution is malformed, unknown or can't be resolved.
    """
    result = "".join(_pieces(text, scope))
    if len(result) > _MOST_CHARACTERS:
        raise LaunchError(f"{text!r:.60} comes to more than {_MOST_CHARACTERS} characters.")
    return result


def _pieces(text: str, scope: Scope) -> Iterator[str]:
    """Yield the parts of a text, substitutions replaced."""
    at = 0
    while (start := text.find("$(", at)) >= 0:
        if start > 0 and text[start - 1] == "\\":
            yield text[at : start - 1] + "$("
            at = start + 2
            continue
        yield text[at:start]
        value, at = _evaluate(text, start + 2, scope)
        yield value
    yield text[at:]


def _evaluate(text: str, at: int, scope: Scope) -> tuple[str, int]:
    """Return the value of the substitution whose name starts at `at`, and where it ends."""
    match = _NAME.match(text, at)
    if match is None:
        raise LaunchError(f"{text!r}: a substitution is written '$(name arguments)'.")
    name, at = match[0], match.end()
    arguments = []
    while at < len(text) and text[at] == " ":
        value, at = _argument(text, at + 1, scope)
        arguments.append(value)
    if at >= len(text) or text[at] != ")":
        raise LaunchError(f"{text!r}: the ')' of '$({name}' is missing.")
    return _apply(name, arguments, scope), at + 1


def _argument(text: str, at: int, scope: Scope) -> tuple[str, int]:
    """Return one argument, which may be quoted and hold substitutions."""
    quote = text[at] if at < len(text) and text[at] in "'\"" else ""
    at += len(quote)
    value = ""
    while at < len(text):
        if text.startswith("$(", at):
            inner, at = _evaluate(text, at + 2, scope)
            value += inner
        elif text[at] == "\\" and at + 1 < len(text):
            value += text[at + 1]
            at += 2
        elif quote and text[at] == quote:
            return value, at + 1
        elif not quote and text[at] in " )":
            return value, at
        else:
            value += text[at]
            at += 1
    if quote:
        raise LaunchError(f"{text!r}: the closing {quote} is missing.")
    return value, at


def _apply(name: str, arguments: list[str], scope: Scope) -> str:
    if name not in _FUNCTIONS:
        known = ", ".join(sorted(_FUNCTIONS))
        raise LaunchError(f"substitution '$({name} ...)' is not supported; these are: {known}.")
    function, least, most = _FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise LaunchError(f"substitution '$({name} ...)' has {len(arguments)} arguments.")
    return function(arguments, scope)


def _variable(arguments: list[str], scope: Scope) -> str:
    name = arguments[0]
    if name not in scope.variables:
        if len(arguments) > 1:
            return arguments[1]
        raise LaunchError(f"'$(var {name})': there is no argument or variable of this name.")
    return scope.variables[name]


_FUNCTIONS: dict[str, tuple[Callable[[list[str], Scope], str], int, int]] = {
    "eval": (lambda arguments, _: _compared(" ".join(arguments)), 1, 99),
    "find-pkg-share": (lambda arguments, _: str(packages.share(arguments[0])), 1, 1),
    "var": (_variable, 1, 2),
}


def _compared(text: str) -> str:
    """Return the value of a Python expression that compares two literals by == or !=."""
    if len(text) > _MOST_EXPRESSION:
        raise LaunchError(
            f"'$(eval ...)': {text!r:.60} has more than {_MOST_EXPRESSION} characters."
        )
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            sides = [ast.literal_eval(side) for side in (node.left, *node.comparators)]
            if len(sides) == 2:
                return str((sides[0] == sides[1]) == isinstance(node.ops[0], ast.Eq))
    except (SyntaxError, ValueError, TypeError):
        pass
    raise LaunchError(
        f"'$(eval ...)': {text!r} is not supported; two literals with == or != between them are."
    )
