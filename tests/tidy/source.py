"""The project's own files, as the style tests read them."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TREES = ("proto", "libs", "services")
MADE = {".git", "build", "dist", "node_modules", "__pycache__"}


def files(*tops: str) -> Iterator[Path]:
    """Files under the given folders of the project (all of it without any), in order."""
    for top in tops or (".",):
        for path in sorted((ROOT / top).rglob("*")):
            parts = path.relative_to(ROOT).parts
            hidden = any(part.startswith(".") and part != ".ci" for part in parts[:-1])
            if path.is_file() and not hidden and not MADE.intersection(parts):
                yield path


def modules(*tops: str) -> Iterator[Path]:
    """Python modules under the given folders of the project, in order."""
    return (path for path in files(*tops) if path.suffix == ".py")


def tree(path: Path) -> ast.Module:
    """The parsed module."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def packages() -> dict[str, Path]:
    """Each package of the distribution by its dotted name, and its folder."""
    found = {}
    for top in TREES:
        for folder in sorted({path.parent for path in modules(top)}):
            found[".".join(folder.relative_to(ROOT / top).parts)] = folder
    return found


def at(path: Path, node: ast.stmt | ast.expr | ast.ExceptHandler) -> str:
    """Where a finding stands, as an editor understands it."""
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a name or an attribute; empty for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr}"
        case _:
            return ""
