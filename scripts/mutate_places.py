# SPDX-License-Identifier: BSD-3-Clause
"""Places of the library that scripts/mutate.py can change, and how each is changed."""
import os
import re

LAYERS = {"async", "chan", "coll", "mem", "msg", "post", "sequence", "spawn", "typed"}


def folder_of(path):
    """A header of programs belongs to the folder of its layer."""
    if not path.startswith("include/"):
        return os.path.dirname(path)
    name = os.path.basename(path)[:-2]
    return "src/layers/" + name if name in LAYERS else "src/core"


def words_of(path):
    """What a path is about: src/net/udp/send.c is about net, udp and send."""
    return set(re.split(r"[/_.@-]", path)) - {"src", "tests", "test", "include", "tern", "c", "h"}


def masked(text):
    """The text with blanks for comments, strings and lines of the preprocessor."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group(0))
    text = re.sub(r"(?ms)^#ifdef __cplusplus.*?^#endif[^\n]*", blank, text)
    text = re.sub(r'(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text)
    return re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text)


def closing(code, at):
    """Where the bracket at `at` is closed."""
    depth = 0
    for i in range(at, len(code)):
        if code[i] in "([{":
            depth += 1
        elif code[i] in ")]}":
            depth -= 1
            if not depth:
                return i
    return len(code) - 1


def bodies(code):
    """Where functions begin and end: a brace of depth 0 behind a closing parenthesis."""
    at = 0
    while (at := code.find("{", at)) >= 0:
        end = closing(code, at)
        if re.search(r"\)\s*$", code[:at]):
            yield at, end
        at = end + 1


HEAD = re.compile(r"\s*(?:(?:if|while|for|switch)\s*(?=\()|else\b|do\b|case\b[^:;{}]*:|default\s*:)")
DECLARES = re.compile(r"(?:static|const|struct|enum|union|unsigned|int|char|long|bool|void|float|double|"
    r"volatile|INSIDE|_Atomic|typedef)\b|\w+\s+\**\w+\s*(?:=|\[|,|$)|\w+\s*\*+\s*\w+\s*(?:=|\[|,|$)")
RETURNS = re.compile(r"return\s+(rc|-E[A-Z0-9]+|-1|-errno|error_set\(.*|\w*refuse\w*\(.*)$", re.S)
CALLS = re.compile(r"((?:int\s+)?rc\s*=\s*)(\w+\(.*\))$", re.S)
TURNED = {"==": "!=", "!=": "==", "&&": "||", "||": "&&"}
UNSEEN = re.compile(r"(?:\w*_prefetch\w*|cpu_relax|__builtin_ia32_pause|sched_yield|sodium_memzero)\(")
MOVED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def statements(code, at, end):
    """Each statement that ends with a semicolon, from its first character to that."""
    start = i = at
    while i < end:
        while m := HEAD.match(code, start, end):
            i = start = m.end()
            if code[start:start + 1] == "(":
                i = start = closing(code, start) + 1
        c = code[i]
        if c == "(" or c == "[":
            i = closing(code, i)
        elif c in "{}":
            start = i + 1
        elif c == ";":
            yield start + len(code[start:i]) - len(code[start:i].lstrip()), i
            start = i + 1
        i += 1


def of_statements(code, at, end):
    for first, last in statements(code, at + 1, end):
        text = code[first:last]
        if m := RETURNS.match(text):
            yield "error", first, last, "return 0"
        elif m := CALLS.match(text):
            yield "error", first, last, m.group(1) + "((void)(" + m.group(2) + "), 0)"
        elif UNSEEN.match(text) or DECLARES.match(text) or re.match(r"return\b|goto\b|\w*assert\(|\(void\)\w+$|$", text):
            continue
        else:
            yield "statement", first, last, ""


def of_conditions(code, at, end):
    for m in re.compile(r"\b(if|while)\s*(?=\()").finditer(code, at, end):
        last = closing(code, m.end())
        yield "condition", m.end() + 1, last, "!(" + code[m.end() + 1:last] + ")"
    for m in re.compile(r" (==|!=|&&|\|\|)(?=\s)").finditer(code, at, end):
        yield "condition", m.start(1), m.end(1), TURNED[m.group(1)]
    for m in re.compile(r" (<|<=|>|>=)(?=\s)").finditer(code, at, end):
        yield "bound", m.start(1), m.end(1), MOVED[m.group(1)]
    for m in re.compile(r"\s[+-] 1(?![\w.])").finditer(code, at, end):
        yield "bound", m.start(), m.end(), ""


class Place:
    def __init__(self, path, text, kind, first, last, new):
        old = text[first:last]
        # A string inside is blank in `new`, so what is kept of the old text comes from there.
        if new.startswith("!("):
            new = "!(" + old + ")"
        elif new.endswith("), 0)"):
            m = CALLS.match(old)
            new = m.group(1) + "((void)(" + m.group(2) + "), 0)" if m else new
        new += "\n" * (old.count("\n") - new.count("\n")) # lines keep their numbers
        self.path, self.kind, self.old, self.new = path, kind, old, new
        self.line = text.count("\n", 0, first) + 1
        self.text = text[:first] + new + text[last:]
        self.key = f"{path}:{self.line}:{first}:{kind}"

    def record(self):
        def flat(s):
            return re.sub(r"\s+", " ", s).strip()
        return {"key": self.key, "path": self.path, "line": self.line, "kind": self.kind,
            "old": flat(self.old), "new": flat(self.new)}


def places_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        text = f.read()
    code = masked(text)
    for at, end in bodies(code):
        for make in (of_statements, of_conditions):
            for kind, first, last, new in make(code, at, end):
                yield Place(path, text, kind, first, last, new)
