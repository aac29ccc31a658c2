# SPDX-License-Identifier: Apache-2.0
"""Which modules of the Python package import each other in a loop, imports inside functions included."""

import ast
import pathlib

# A few files of one subject may name each other (inside functions); no loop may grow beyond that.
MOST = 5


def imports_of(package):
    """{module: {module it imports}} of a package's folder; the package's own names (import weft) do not count."""
    root = package.parent
    files = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {
        module: {
            name
            for node in ast.walk(ast.parse(path.read_text()))
            for name in _named(node, module, path.stem == "__init__", files)
            if name not in (module, package.name)
        }
        for module, path in files.items()
    }


def _named(node, module, is_package, files):
    if isinstance(node, ast.Import):
        return [a.name for a in node.names if a.name in files]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        parts = module.split(".")
        parts = parts[: len(parts) - node.level + is_package]
        base = ".".join([*parts, *([node.module] if node.module else [])])
    inner = [f"{base}.{a.name}" for a in node.names]
    return [name if name in files else base for name in inner if name in files or base in files]


def loops(imports):
    """Groups of more than one module that reach each other (Tarjan's algorithm)."""
    order, low, stack, out = {}, {}, [], []

    def visit(at):
        order[at] = low[at] = len(order)
        stack.append(at)
        for to in imports.get(at, ()):
            if to not in order:
                visit(to)
            if to in stack:
                low[at] = min(low[at], low[to])
        if low[at] == order[at]:
            group = []
            while not group or group[-1] != at:
                group.append(stack.pop())
            if len(group) > 1:
                out.append(sorted(group))

    for module in imports:
        if module not in order:
            visit(module)
    return out


def problems(package):
    """A line for each loop of more than MOST modules."""
    imports = imports_of(pathlib.Path(package))
    imports.pop(pathlib.Path(package).name, None)
    return [
        f"{len(group)} Python modules import each other in a loop ({MOST} at most): {', '.join(group)}"
        for group in loops(imports)
        if len(group) > MOST
    ]
