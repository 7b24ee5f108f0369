#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tests/docs/budgets.py [--lower] LIBTERN.SO: compares tests/docs/budgets.txt with the tree, and
fails for each row whose figure is above its budget. --lower writes the figures that are below it
into the table. A function here measures the kind of row that it is named after: it returns the
figure; or the figure and a place; or a list of places, whose length is the figure."""
import collections
import functools
import glob
import os
import re
import subprocess
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
TABLE = "tests/docs/budgets.txt"
WIDTH = 100 # columns
LONG = 600 # lines of a source
CHOSEN = "entries file_lines code_lines by_hand decisions".split() # limits, and not what was counted
HOUSE = "src lab tests scripts models examples apps bindings".split()
Row = collections.namedtuple("Row", "kind what budget why")


@functools.lru_cache(None)
def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def uncommented(path):
    return re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)


def files(folders, ends=""):
    return sorted(path for folder in folders for path in glob.glob(folder + "/**", recursive=True)
        if path.endswith(ends) and os.path.isfile(path) and "/corpus/" not in path)


def command(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


@functools.lru_cache(None)
def size():
    rows = [line.split("\t") for line in command("scripts/size.sh", "--tsv").splitlines()]
    return {row[0]: row for row in rows}


def lines(folder, column=2):
    return int(size().get(folder, "0000")[column]) # a folder may go


def tokens(folder):
    return lines(folder, 3)


def function(folder):
    """The longest body, in lines; a brace at the left begins and ends one."""
    found = []
    for path in files(["include", "src", "lab", "tests"], (".c", ".h")):
        if folder == ("tests" if "_test." in path else path.split("/")[0]):
            for body in re.finditer(r"(?<=\n)\{\n(.*?)^\}$", read(path), re.M | re.S):
                at = read(path).count("\n", 0, body.start()) + 1
                found.append((body[1].count("\n"), f"{path}:{at}"))
    return max(found)


def long_files(folder):
    return [p for p in files([folder], (".c", ".h", ".sh")) if read(p).count("\n") > LONG]


def entries(folder):
    """The most files and folders in one folder of it."""
    return max((len(os.listdir(p)), p) for p in glob.glob(folder + "/*/"))


def file_lines(pattern):
    return max((read(p).count("\n"), p) for p in glob.glob(pattern, recursive=True))


def code_lines(pattern):
    """Of all files that match, without comments and blank lines."""
    return sum(bool(line.strip()) for p in glob.glob(pattern) for line in uncommented(p).split("\n"))


def no_readme(_):
    """Folders with sources and without a README.md."""
    folders = {os.path.dirname(p) for p in files(["include"] + HOUSE, (".c", ".h", ".sh", ".py"))}
    folders |= {"cmake", "docs"}
    return sorted(f for f in folders if not os.path.exists(f + "/README.md"))


def by_hand(folder):
    """Lines of documents, without what a command writes: blocks between markers, and docs/api.md,
    of which docs/api.md.in is written by hand. Nor do guides for users count."""
    pages = set(glob.glob(folder + "/*.md*")) - {"docs/api.md", "docs/sim-tutorial.md"}
    written = re.compile(r"^<!-- figures: .*?^<!-- end: .*?\n", re.S | re.M)
    return sum(written.sub("", read(p)).count("\n") for p in pages)


def decisions(path):
    return len(re.findall(r"^\*\*\d+\. ", read(path), re.M))


def wide_sources(_):
    """In scripts a string counts as nothing: most have no place where they could be broken."""
    paths = [p for p in files(["include", ".ci"] + HOUSE) if p.endswith((".c", ".h", ".sh"))
        or os.access(p, os.X_OK) and not p.endswith(".py")]
    return [f"{p}:{n}" for p in paths for n, line in enumerate(read(p).expandtabs(8).split("\n"), 1)
        if len(line) > WIDTH and (p.endswith((".c", ".h")) or
            len(re.sub(r"'[^']*'|\"[^\"]*\"", "", line)) > WIDTH)]


def wide_documents(_):
    """Tables, programs and addresses may be wider."""
    wide = []
    for path in ["README.md"] + glob.glob("docs/*.md") + files(HOUSE, "README.md"):
        fence = False
        for n, line in enumerate(read(path).split("\n"), 1):
            fence ^= line.startswith("```")
            if len(line) > WIDTH and not fence and not re.match(" *[|]|.*https?:", line):
                wide.append(f"{path}:{n}")
    return wide


def families(page):
    """Functions on the page, each with its forms _start, _array and _for."""
    names = {name for program in re.findall(r"^```c$(.*?)^```$", uncommented(page), re.M | re.S)
        for name in re.findall(r"^(?!typedef)[a-z].*?\b(tern_\w+[^\W_])\(", program, re.M)}
    forms = {n: n[:-len(end)] for n in names for end in ("_start", "_array", "_for",
        "_start_array") if n.endswith(end) and n[:-len(end)] in names}
    return {n: [n] + [form for form, of in forms.items() if of == n] for n in names - set(forms)}


def public(page):
    return len(families(page))


def unused(page):
    """Families that no example, no program of apps/ and none of the laboratory uses."""
    programs = "\n".join(uncommented(p) for p in files(["examples", "apps", "lab"], (".c", ".h")))
    words = set(re.findall(r"\w+", programs))
    return sorted(n for n, forms in families(page).items() if not words.intersection(forms))


def exported(_):
    return len(re.findall(r" [A-Z] tern", command("nm", "-D", "--defined-only", sys.argv[-1])))


def settings(path):
    """Rows of the library's table, or items of a man page."""
    return len(set(re.findall(r"\{ \"(TERN_\w+)\"|^\.It Ev (TERN_\w+)", read(path), re.M)))


def fields(name):
    """Of a struct, with those of structs and unions in it; - is any without a row."""
    found, rows = [], {row.what for row in table(read(TABLE)) if row.kind == "fields"}
    for path in files(["include", "src", "lab"], (".c", ".h")):
        for struct in re.finditer(r"^struct (\w+) \{(.*?)^\}", uncommented(path), re.M | re.S):
            if struct[1] not in rows if name == "-" else struct[1] == name:
                body = re.sub(r"\([^()]*\)|\[[^]]*\]|\}[^;{}]*;", "", struct[2])
                found.append((len(re.findall("[;,]", body)), f"{path}: struct {struct[1]}"))
    return max(found, default=(0, ""))


def word(what):
    """How often it is written, as a part of a name too."""
    pattern = re.compile(rf"(?i)(?<![a-z]){what}(?:s|d|ed|ing)?(?![a-z])")
    paths = [p for p in ["README.md"] + files(["include", "man", "docs"] + HOUSE) if p != TABLE]
    return [p for p in paths for _ in pattern.findall(read(p))]


def table(text):
    rows = [re.fullmatch(r"(\w+) +(\S+) +(\d+) +(\S.*)", line)
        or sys.exit(f"{TABLE}: a row has a kind, what it is of, a budget and why: {line}")
        for line in text.split("\n") if line and line[0] != "#"]
    return [Row(row[1], row[2], int(row[3]), row[4]) for row in rows]


def fault(row, figure, places, before):
    above = figure - row.budget
    if above > 0:
        said = f"{figure} is {above} above the budget of {row.budget}. Remove {above}, or raise it" \
            f" in {TABLE} with a line that says why."
        return "\n        ".join([said] + sorted(set(places))[:12])
    for old in before:
        if old[:2] == row[:2] and old.budget < row.budget and old.why == row.why:
            return f"{TABLE} says why the budget was {old.budget}; say why it is {row.budget} now."
    return None


def main():
    failed, text, before = 0, read(TABLE), []
    if os.path.exists(".git"):
        for commit in command("git", "log", "-n30", "--format=%h", "--", TABLE).split():
            before += table(command("git", "show", f"{commit}:{TABLE}"))
    for row in table(text):
        figure = globals()[row.kind](row.what)
        figure, places = (len(figure), figure) if isinstance(figure, list) else \
            (figure[0], figure[1:]) if isinstance(figure, tuple) else (figure, [])
        said = fault(row, figure, places, before)
        if said:
            print(f"    failed: {row.kind} {row.what}: {said}")
            failed += 1
        elif figure < row.budget and row.kind not in CHOSEN:
            print(f"{row.kind} {row.what} can be lowered from {row.budget} to {figure}")
            text = re.sub(rf"(?m)^({row.kind} +{re.escape(row.what)} +){row.budget}\b",
                rf"\g<1>{figure:<{len(str(row.budget))}}", text)
    if "--lower" in sys.argv:
        with open(TABLE, "w", encoding="utf-8") as f:
            f.write(text)
    print(f"{failed} failed" if failed else "no budget is passed")
    return failed > 0


sys.exit(main())
