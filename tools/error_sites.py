# SPDX-License-Identifier: Apache-2.0
"""Where errors are made: slug, kind, text, notes, help and file of each, read from the source of C++ and Python.

A slug is an argument of a call that makes or throws an error (`Error(kind, slug, text)`, `refuse(...)`, `pe_fault(...)`,
`_error(cls, slug, text)`), or what `.code` is given. Parts that are known at run time only stand as {…} in a slug and
in a text: `array.{…}.dtype` is a family of slugs.
"""

import collections
import re

SLUG = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+")
MAKER = re.compile(
    r"(?:error|fault|refus|fail|bad|wrong|damaged|illegal|reject|slug)", re.IGNORECASE
)
STRING = re.compile(r'[fru]{0,2}"(?:[^"\\\n]|\\.)*"|[fru]{0,2}\'(?:[^\'\\\n]|\\.)*\'')
HOLE = "{…}"
# Helpers that put a word before the slug that they are given, and what they make: (folder or file, callee): prefix.
PREFIXES = {
    ("src/weft/runtime/plan.cpp", "bad"): "plan.",
    ("src/weft/stages/", "refuse"): "stages.",
    ("src/weft/ir/interpret", "fault"): "interpret.",
    ("src/weft/ir/interpret", "refuse"): "interpret.",
    ("src/weft/ir/verify.cpp", ""): "verify.",
    ("src/weft/pass/lower_cross_thread_reduction.cpp", "refuse"): "lower.cross_thread.",
    ("src/weft/targets/qpu/language/interpret.cpp", "fail"): "qpu.interpret.",
    ("src/weft/targets/wse/sdk_layout.cpp", "refuse"): "wse.sdklayout.",
    ("python/weft/io.py", "_refuse"): "io.",
    ("python/weft/torch/operators.py", ""): "torch.",
}


def arguments(text, at):
    """The arguments of the bracket that opens at `at`, as texts."""
    out, depth, start, i = [], 0, at + 1, at
    while i < len(text):
        c = text[i]
        if c in "\"'":
            match = STRING.match(text, i)
            i = match.end() if match else i + 1
            continue
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return [*out, text[start:i].strip()]
        elif c == "," and depth == 1:
            out.append(text[start:i].strip())
            start = i + 1
        i += 1
    return [*out, text[start:i].strip()]


def closing(text, at):
    """The place after the bracket that closes the one at `at`."""
    depth, i = 0, at
    while i < len(text):
        if text[i] in "\"'":
            match = STRING.match(text, i)
            i = match.end() if match else i + 1
            continue
        depth += (text[i] in "([{") - (text[i] in ")]}")
        i += 1
        if depth == 0:
            break
    return i


def additions(text, begin, end, args, at):
    """Notes and help of the error that a call makes: its arguments after the text, and what is called on the result."""
    notes, helps = afterwards(text, begin, end)
    for a in args[at + 2 :]:
        if named := re.match(r"(notes?|help)=(.*)", a, re.DOTALL):
            (helps if named.group(1) == "help" else notes).append(named.group(2))
        elif "=" not in STRING.sub("", a) and STRING.search(a):
            helps.append(a)
    while call := re.compile(r"\s*\.(note|help|repair|at|context)\(").match(text, end):
        end = closing(text, call.end() - 1)
        if call.group(1) in ("note", "help", "repair"):
            (notes if call.group(1) == "note" else helps).append(text[call.end() : end - 1])
    return [shown(notes), shown(helps)]


def afterwards(text, begin, end):
    """The same for an error that a variable holds: `Refusal r = refuse(...); r.note(...);` until it is returned or thrown."""
    above = text[max(0, begin - 60) : begin]
    if held := re.search(r"(\w+)\s*=\s*$", above):
        name = held.group(1)
    elif re.search(r"\b(?:Error|Refusal) $", above):  # Error name(...)
        name = re.match(r"\w+", text[begin:]).group()
    else:
        return [], []
    last = re.compile(rf"(?:return|throw|raise) (?:std::move\()?{name}\b").search(text, end)
    notes, helps = [], []
    for call in re.finditer(
        rf"\b{name}\.(note|help|repair)\(", text[end : last.end() + 200 if last else end + 600]
    ):
        inner = text[end + call.end() : closing(text, end + call.end() - 1) - 1]
        (notes if call.group(1) == "note" else helps).append(inner)
    return notes, helps


def shown(expressions):
    """Several expressions as one sentence; what is known at run time only is left out."""
    parts = []
    for e in expressions:
        e = re.sub(r"^[\[(]\s*|\s*,?\s*[\])]$", "", e.strip()) if e.strip()[:1] in "[(" else e
        found = template(e.strip())
        if found.replace(HOLE, "").strip():
            parts.append(found)
    return "; ".join(parts)


def split(expression, separators):
    """The parts of an expression between separators that no bracket or string holds."""
    parts, start, i = [], 0, 0
    while i < len(expression):
        if string := STRING.match(expression, i):
            i = string.end()
        elif expression[i] in "([{":
            i = closing(expression, i)
        elif found := re.compile(separators).match(expression, i):
            parts.append(expression[start:i])
            start = i = max(found.end(), i + 1)
        else:
            i += 1
    return [*(p.strip() for p in parts), expression[start:].strip()]


def arms(expression):
    """The values that a conditional expression may have; the expression alone where it is none."""
    asked = split(expression, r"\?(?!\?)")
    if len(asked) > 1:  # C++: condition ? value : otherwise
        rest = " ? ".join(asked[1:])
        value, *otherwise = split(rest, r"(?<!:):(?!:)")
        return [value, *arms(" : ".join(otherwise))] if otherwise else [expression]
    chosen = (
        split(expression, r"\sif\s.*?\selse\s(?!.*\selse\s)")
        if " else " in expression
        else [expression]
    )
    return chosen if len(chosen) == 2 else [expression]


def one_of(texts):
    """Texts of which one appears; an empty one is left out."""
    texts = list(dict.fromkeys(t for t in texts if t.strip()))
    return " / ".join(texts) if any(t != HOLE for t in texts) else HOLE


def template(expression, before=""):
    """The text of an expression: its strings, with {…} for what is known at run time.

    `before`: the source above it, where a variable got its value.
    """
    expression = expression.strip()
    if moved := re.match(r"(?:std::move|std::string|weft::cat|cat|str)?\(", expression):
        end = closing(expression, moved.end() - 1)
        if end == len(expression):
            inner = arguments(expression, moved.end() - 1)
            return re.sub(r"(?:\{…\})+", HOLE, "".join(template(i, before) for i in inner))
    choices = arms(expression)
    if len(choices) > 1:
        return one_of(template(c, before) for c in choices)
    added = split(expression, r"\+")
    if len(added) > 1:
        return re.sub(r"(?:\{…\})+", HOLE, "".join(template(a, before) for a in added))
    if before and re.fullmatch(r"[a-z_]\w*", expression):
        function = re.split(r"\n\}|\ndef ", before)[-1]
        given = re.finditer(rf"\b{expression}\s*=(?!=)\s*", function)
        values = [split(function[g.end() :], r";|\n(?!\s*[\"f+:?])")[0] for g in given]
        return one_of(template(v) for v in values) if values else HOLE
    strings = list(STRING.finditer(expression))
    outside = STRING.sub("", expression).strip()
    if not strings or re.search(r"[?:\w(]", outside):
        return HOLE
    parts = []
    for s in strings:  # adjacent strings are one
        body = s.group().lstrip("fru")[1:-1]
        if s.group()[0] == "f":
            body = re.sub(r"\{[^{}]*\}", HOLE, body)
        parts.append(re.sub(r"\\([\"'])", r"\1", body))
    return "".join(parts)


def kind_of(args, near):
    for a in args:
        if found := re.search(r"ErrorKind::(\w+)", a):
            return found.group(1)
        if found := re.fullmatch(r"(?:_core|weft)\.(\w+?)(?:Error)?", a):
            name = {"OutOfMemory": "memory", "Argument": "value"}.get(found.group(1))
            return name or found.group(1).lower()
    if args and re.fullmatch(r'"[a-z]+"', args[0]) and near == "error":
        return args[0].strip('"')
    return ""


def sites(name, text):
    """(slug, kind, text, notes, help) of each error that the file makes."""
    for call in re.finditer(r"([\w:.>-]+)\s*([({])", text):
        callee = re.split(r"[:.>-]+", call.group(1))[-1]
        if not MAKER.search(callee):
            continue
        args = arguments(text, call.end() - 1)
        at = slug_position(name, callee, args)
        if at is not None:
            message = template(args[at + 1], text[: call.start()]) if at + 1 < len(args) else ""
            kind = kind_of(args[:at], callee.lstrip("_"))
            more = additions(text, call.start(), closing(text, call.end() - 1), args, at)
            if not message.replace(HOLE, "").strip() and prefix_of(name, callee):
                message, more = more[1], [more[0], ""]  # such a helper is told the reason only
            yield whole(name, callee, template(args[at])), kind, message, *more
    for match in re.finditer(r"\.code\s*=\s*(\"[^\"]*\"|cat\()", text):
        at = match.start(1)
        slug = template(match.group(1) if text[at] == '"' else text[at : at + 400])
        following = re.match(
            r"[^;]*;[^}]{0,120}?\w+\.message\s*=\s*([^;]*);", text[match.start() :]
        )
        if SLUG.fullmatch(slug.replace(HOLE, "x")) and not slug.startswith(HOLE):
            yield slug, "", template(following.group(1)) if following else "", "", ""


def prefix_of(name, callee):
    for (where, who), prefix in PREFIXES.items():
        if name.startswith(where) and who in ("", callee):
            return prefix
    return ""


def whole(name, callee, slug):
    prefix = prefix_of(name, callee)
    return slug if not prefix or slug.startswith(prefix) else prefix + slug


def slug_position(name, callee, args):
    short = bool(prefix_of(name, callee))
    for i, a in enumerate(args[:5]):
        if not a.startswith(('"', "'", 'f"', "cat(")):
            continue
        slug = template(a)
        if slug == HOLE or "." not in slug and not short:
            continue
        if SLUG.fullmatch(slug.replace(HOLE, "x")) and slug[0] != "{":
            return i
        if short and re.fullmatch(r"[a-z_]+", slug) and i + 1 < len(args):
            return i
    return None


def repairs(root):
    """slug or family: text of all rows of repairs.def (weft/base/repairs.h)."""
    row = re.compile(r'^REPAIR\("([^"]*)", "((?:[^"\\\n]|\\.)*)"\)$', re.MULTILINE)
    tables = sorted((root / "src/weft").rglob("repairs.def"))
    return {
        slug: re.sub(r"\\([\"\\])", r"\1", text)
        for table in tables
        for slug, text in row.findall(table.read_text())
    }


def row_of(rows, slug):
    """The row that an error without help of its own takes: its own, or its family's."""
    if slug.replace(HOLE, "*") in rows:
        return slug.replace(HOLE, "*")
    name = slug.replace(HOLE, "x")
    return next(
        (r for r in rows if "*" in r and re.fullmatch(re.escape(r).replace(r"\*", ".+"), name)), ""
    )


def collect(root):
    """slug: {"kind", "text", "notes", "help", "files"} of all errors of the tree."""
    found = {}
    kinds = collections.defaultdict(collections.Counter)
    for folder, patterns in (
        ("src/weft", ("*.cpp", "*.h")),
        ("python/weft", ("*.py",)),
        ("python/bindings", ("*.cpp", "*.h")),
    ):
        for path in sorted(p for pattern in patterns for p in (root / folder).rglob(pattern)):
            name = str(path.relative_to(root))
            text = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
            for slug, kind, message, notes, repair in sites(name, text):
                entry = found.setdefault(
                    slug, {"kind": "", "text": "", "notes": "", "help": "", "files": set()}
                )
                entry["kind"] = entry["kind"] or kind
                if len(entry["text"].replace(HOLE, "")) < len(message.replace(HOLE, "")):
                    entry["text"] = message
                entry["files"].add(name)
                for key, said in (("notes", notes), ("help", repair)):
                    if len(entry[key].replace(HOLE, "")) < len(said.replace(HOLE, "")):
                        entry[key] = said
                if kind:
                    kinds[slug.split(".")[0]][kind] += 1
    # The throw inside of such a helper is no error of its own.
    for prefix in set(PREFIXES.values()):
        found.pop(prefix + HOLE, None)
    rows = repairs(root)
    for slug, entry in found.items():
        entry["help"] = entry["help"] or rows.get(row_of(rows, slug), "")
    # Refusals get their kind where they are thrown, which is one place for each family.
    for slug, entry in found.items():
        most = kinds[slug.split(".")[0]].most_common(1)
        entry["kind"] = entry["kind"] or (most[0][0] if most else "")
    return found
