"""How long a module may be, what it may catch, and what a test may not do."""

import ast

from tests.tidy.source import ROOT, TREES, at, dotted, modules, packages, tree

LONGEST = 400
LONGER: dict[str, int] = {}  # a ratchet: lines of modules over the limit, only ever lowered

SKIPS = {"skip", "skipif", "xfail", "importorskip", "skipIf", "skipUnless", "expectedFailure"}
BROAD = {"Exception", "BaseException"}


def caught(handler: ast.ExceptHandler) -> set[str]:
    """Names of what a handler catches; a bare one catches all."""
    match handler.type:
        case None:
            return {"BaseException"}
        case ast.Tuple(elts=kinds):
            return {dotted(kind) for kind in kinds}
        case kind:
            return {dotted(kind)}


def raises_again(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only tidies up: its last statement lets the error go on."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def naps(call: ast.Call) -> bool:
    """Whether a call waits for a time where a test should wait for an event."""
    match dotted(call.func), call.args:
        case "time.sleep", _:
            return True
        case "asyncio.sleep", [ast.Constant(value=int() | float() as seconds), *_]:
            return seconds >= 1
        case _:
            return False


def test_modules_are_short() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in modules()
    }
    assert {name: size for name, size in lengths.items() if size > LONGEST} == LONGER


def test_errors_are_caught_by_name() -> None:
    broad = [
        at(path, node)
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler) and caught(node) & BROAD and not raises_again(node)
    ]
    assert broad == []


def test_tests_wait_for_events() -> None:
    sleeping = [
        at(path, node)
        for path in modules("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and naps(node)
    ]
    assert sleeping == []


def test_every_test_runs() -> None:
    skipped = [
        at(path, node)
        for path in modules("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and node.attr in SKIPS
        and dotted(node).startswith(("pytest.", "unittest."))
    ]
    assert skipped == []


def test_packages_say_what_they_are() -> None:
    silent = [
        name
        for name, folder in packages().items()
        if not (folder / "__init__.py").is_file()
        or not ast.get_docstring(tree(folder / "__init__.py"))
    ]
    assert silent == []


def test_namespace_stays_open() -> None:
    closed = [top for top in TREES if list((ROOT / top / "rackwright").glob("*.py"))]
    assert closed == []
