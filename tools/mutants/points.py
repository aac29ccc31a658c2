# SPDX-License-Identifier: Apache-2.0
"""Places of a source where a fault of one expression or statement can be planted behind a switch.

A place is replaced by (weft_mutant(K) ? faulty : sound), so that one object holds many faults, of which a process turns on
none or one. weft_mutant also notes that the place was reached."""

import ast
import copy
import re

# What is blanked before places are searched: numbers with separators stay.
QUIET = re.compile(
    r"\b\d[\d']*\d\b|R\"([^ ()\\]{0,16})\((?:.|\n)*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*|/\*(?:.|\n)*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.MULTILINE,
)
SWAPS = {
    " <= ": " < ", " >= ": " > ", " < ": " <= ", " > ": " >= ", " == ": " != ", " != ": " == ",
    " + ": " - ", " - ": " + ", " * ": " + ", " / ": " * ", " % ": " * ", " && ": " || ", " || ": " && ",
}  # fmt: skip
HOLE = "\x02"  # where the number of a fault goes
WORDS = {"true": "false", "false": "true", "0": "1", "1": "0"}
OPERATOR = re.compile("|".join(re.escape(s) for s in SWAPS))
# Lines whose faults no program could show, or that are evaluated by the compiler.
SKIPPED = re.compile(
    r"\b(constexpr|static_assert|template|using|namespace|enum|operator|case|static const)\b|\bcat\(|\berror\(|\bWEFT_CHECK\(|= default|\)[ a-z]* = 0;"
)
STATEMENT = re.compile(r"[A-Za-z_][\w:.>\-\[\]()]*(?:\(.*\)| [-+*/|&^]?= .+);")
BEFORE_STATEMENT = re.compile(r"[;{}:)]\s*$|\belse\s*$")


class Point:
    """Bytes `begin` to `end` of a source become `guarded` (with the number of the fault in place of HOLE)."""

    def __init__(self, line, begin, end, guarded, old, new):
        self.line, self.begin, self.end, self.guarded, self.old, self.new = (
            line,
            begin,
            end,
            guarded,
            old,
            new,
        )

    def __repr__(self):
        return f"{self.line + 1}: {self.old}  ->  {self.new}"


def quiet(text):
    def blank(match):
        if match[0][0].isdigit():
            return match[0]
        return "".join("\n" if c == "\n" else "\x01" for c in match[0])

    return QUIET.sub(blank, text)


def region(text, begin, end):
    """The expression around text[begin:end]: up to a bracket, comma, semicolon, assignment, ?, : or return. None: there is none."""
    depth, i = 0, begin - 1
    while i >= 0:
        c = text[i]
        if c in ")]":
            depth += 1
        elif c == "}":
            return None
        elif c in "([{":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0:
            if c in ",;?":
                break
            if c == ":":
                if text[i - 1] != ":":
                    break
                i -= 1
            elif c == "=" and text[i + 1] != "=" and text[i - 1] not in "=!<>":
                break
            elif c == " " and (
                word := re.search(r"\b(return|throw|case|else|do)$", text[max(0, i - 7) : i])
            ):
                if word[0] in ("case", "throw"):
                    return None
                break
        i -= 1
    depth, j = 0, end
    while j < len(text):
        c = text[j]
        if c in "{}":
            if c == "}" and depth == 0:
                break
            return None
        if c in "([":
            depth += 1
        elif c in ")]":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0:
            if c in ",;?":
                break
            if c == ":":
                if text[j + 1] != ":":
                    break
                j += 1
            elif c == "=" and text[j + 1] != "=" and text[j - 1] not in "=!<>":
                return None
        j += 1
    while i + 1 < j and text[i + 1].isspace():
        i += 1
    while j > i + 1 and text[j - 1].isspace():
        j -= 1
    return (i + 1, j) if j - i - 1 < 400 else None


def closing(text, at):
    """Where the bracket that opens at `at` closes."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i
    return None


def cpp_points(source):
    """For each line of C++ the points that can be planted there."""
    plain = quiet(source)
    out, start = {}, 0
    before = ""
    for number, line in enumerate(plain.split("\n")):
        whole = source[start : start + len(line)]
        if line.strip() and "\x01" not in line[:2] and not SKIPPED.search(whole):
            out[number] = list(cpp_points_of_line(source, plain, number, start, line, before))
        if line.strip(" \x01"):
            before = line.rstrip("\x01 ")
        start += len(line) + 1
    return {number: points for number, points in out.items() if points}


def choice(source, number, span, new):
    old = source[span[0] : span[1]]
    return Point(number, *span, f"(weft_mutant({HOLE}) ? ({new}) : ({old}))", old, new)


def cpp_points_of_line(source, plain, number, start, line, before):
    for match in OPERATOR.finditer(line):
        at = start + match.start(), start + match.end()
        if span := region(plain, *at):
            new = source[span[0] : at[0]] + SWAPS[match[0]] + source[at[1] : span[1]]
            yield choice(source, number, span, new)
    for match in re.finditer(r"(?<![\w.'])(true|false|0|1)(?![\w.'])", line):
        yield choice(source, number, (start + match.start(), start + match.end()), WORDS[match[0]])
    for match in re.finditer(r"std::(min|max)(?=[(<])", line):
        begin = start + match.start()
        opened = plain.find("(", begin)
        if (end := closing(plain, opened)) and "{" not in plain[begin:end]:
            other = "max" if match[1] == "min" else "min"
            yield choice(
                source,
                number,
                (begin, end + 1),
                f"std::{other}" + source[start + match.end() : end + 1],
            )
    for match in re.finditer(r"(?<![\w+])(\+\+|--)(?=[\w(*])|(?<=[\w)\]])(\+\+|--)(?![\w+])", line):
        at = start + match.start(), start + match.end()
        if span := region(plain, *at):
            new = (
                source[span[0] : at[0]]
                + ("--" if match[0] == "++" else "++")
                + source[at[1] : span[1]]
            )
            yield choice(source, number, span, new)
    for match in re.finditer(r"\b(?:if|while) \(", line):
        begin = start + match.end() - 1
        end = closing(plain, begin)
        inside = plain[begin + 1 : end] if end else ";"
        if not re.search(r"[;{]|(?<![=!<>])=(?!=)", inside):
            yield choice(source, number, (begin + 1, end), f"!({source[begin + 1 : end]})")
    bare = line.strip()
    at = start + len(line) - len(line.lstrip())
    if bare == "continue;":
        yield Point(
            number,
            at,
            at + len(bare),
            f"{{ if (weft_mutant({HOLE})) break; continue; }}",
            bare,
            "break;",
        )
    elif (
        STATEMENT.fullmatch(bare)
        and BEFORE_STATEMENT.search(before)
        and bare.count("(") == bare.count(")")
    ):
        text = source[at : at + len(bare)]
        yield Point(
            number, at, at + len(bare), f"{{ if (!weft_mutant({HOLE})) {text} }}", text, ";"
        )


COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
BINARY = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}


def changed(node):
    """The nodes with one fault that may stand in place of an expression."""
    other = copy.deepcopy(node)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        other.ops[0] = COMPARE[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        if isinstance(node.left, ast.JoinedStr) or (
            isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        ):
            return None
        other.op = BINARY[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        other.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
    elif isinstance(node, ast.Constant) and (node.value is True or node.value is False):
        other.value = not node.value
    elif isinstance(node, ast.Constant) and type(node.value) is int and node.value in (0, 1):
        other.value = 1 - node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        other = node.operand
    elif isinstance(node, ast.IfExp):
        other.body, other.orelse = node.orelse, node.body
    else:
        return None
    return other


def python_points(source):
    """For each line of Python the points that can be planted there: in bodies of functions."""
    raw = source.encode()
    starts = [0]
    for line in raw.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    lines, out = raw.split(b"\n"), {}

    def span(node):
        return starts[node.lineno - 1] + node.col_offset, starts[
            node.end_lineno - 1
        ] + node.end_col_offset

    def add(node, guarded, new):
        begin, end = span(node)
        out.setdefault(node.lineno - 1, []).append(
            Point(node.lineno - 1, begin, end, guarded, raw[begin:end].decode(), new)
        )

    def statement(node):
        line, text = lines[node.lineno - 1], raw[slice(*span(node))].decode()
        alone = (
            not line[: node.col_offset].strip()
            and node.end_lineno == node.lineno
            and not line[node.end_col_offset :].split(b"#")[0].strip()
        )
        if not alone:
            return
        indent = line[: node.col_offset].decode()
        if isinstance(node, ast.Continue):
            add(node, f"if _weft_mutant({HOLE}): break\n{indent}continue", "break")
        call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        stored = isinstance(node, ast.Assign) and not isinstance(
            node.targets[0], ast.Name | ast.Tuple
        )
        if call or stored or isinstance(node, ast.AugAssign):
            add(node, f"if not _weft_mutant({HOLE}): {text}", "pass")

    def visit(node, inside):
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr | ast.pattern):
                    continue
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and name != "body":
                    continue  # defaults, annotations and decorators
                if name in ("annotation", "returns"):
                    continue
                within = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                if within and isinstance(child, ast.Raise):
                    continue
                if within and isinstance(child, ast.stmt):
                    statement(child)
                if within and isinstance(child, ast.expr) and (other := changed(child)) is not None:
                    new = ast.unparse(other)
                    add(
                        child,
                        f"(({new}) if _weft_mutant({HOLE}) else ({raw[slice(*span(child))].decode()}))",
                        new,
                    )
                visit(child, within)

    visit(ast.parse(source), False)
    return out


def plant(source, points):
    """The source with every point behind its switch; `points`: {number: point}, none inside another."""
    python = isinstance(source, bytes)
    out, at = [], 0
    for number, point in sorted(points.items(), key=lambda item: item[1].begin):
        guarded = point.guarded.replace(HOLE, str(number))
        out += [source[at : point.begin], guarded.encode() if python else guarded]
        at = point.end
    return (b"" if python else "").join([*out, source[at:]])
