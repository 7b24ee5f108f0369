#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A test of the tests: changes the library at seeded random places, runs the tests that execute the
changed line, and lists the changes that no test noticed. docs/testing.md has the results.

A place is inside a function of the library, inline headers included. A change is one of
  condition   turned around: !(...), == for !=, && for ||
  statement   dropped
  bound       moved by one: < for <=, + 1 left out
  error       forgotten: return rc becomes return 0, rc = f() becomes f()
A change that does not compile, or that gives the same object code, is replaced by the next place.
No place is a statement that a program cannot notice: a prefetch, a pause of the processor, an
sched_yield() between two looks, memory wiped after its last use (see UNSEEN). Everything else is.

Everything happens in a scratch folder, with a copy of the tree. The library is a shared one there,
so a changed source is compiled and linked once, and no test program is. Of a changed header, every
source of the library that includes it is compiled again, and each test program before it runs.
Each of the JOBS workers has a library of its own beside hard links to the test programs.

Before the first change every test runs once, unchanged, for its time and for the lines that it
executes: gcc lets each block of code call scripts/mutate_cover.c, and the lines of a block are
those of its debug information. Then a change is tried with the tests that execute its line: those
of its folder first, quick ones first, until --budget seconds of tests are spent. A change of a line
that no test executes is not tried, and is listed apart: there a test is missing.
"""
import argparse
import bisect
import concurrent.futures
import csv
import glob
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

# -- Which tests ---------------------------------------------------------------------------------

# Left out for their time, or because they look at the tree rather than at the library.
LEFT_OUT = {"soak", "slow", "perf", "once"}
YET = {"tests/seeds/crossings_test"} # every layer is in it


LAYERS = {"async", "chan", "coll", "mem", "msg", "post", "sequence", "spawn", "typed"}


def folder_of(path):
    """A header of programs belongs to the folder of its layer."""
    if not path.startswith("include/"):
        return os.path.dirname(path)
    name = os.path.basename(path)[:-2]
    return "src/layers/" + name if name in LAYERS else "src/core"


# -- Places --------------------------------------------------------------------------------------

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


# -- The scratch folder --------------------------------------------------------------------------

def tree_copy(root, to):
    """A copy of what git knows, or of all but builds; times stay, so that little is built again."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
        capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = [n for n in listed.stdout.decode().split("\0") if n]
    else:
        names = []
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if f != ".git" and not f.startswith("build")]
            names += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    for name in names:
        source, target = os.path.join(root, name), os.path.join(to, name)
        if not os.path.isfile(source):
            continue
        if os.path.exists(target) and os.path.getmtime(target) == os.path.getmtime(source):
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target)
    known = set(names)
    for folder, _, files in os.walk(to): # what is no longer there
        for f in files:
            if os.path.relpath(os.path.join(folder, f), to) not in known:
                os.unlink(os.path.join(folder, f))


def must(command, log, **more):
    with open(log, "a", encoding="utf-8") as out:
        if subprocess.run(command, stdout=out, stderr=out, check=False, **more).returncode:
            sys.exit(f"mutate: {shlex.join(command[:4])} ... failed; {log} has it all")


def private():
    """What keeps a changed program's processes apart from all others, where the system lets us."""
    for way in (["unshare", "-pf", "--mount-proc", "--kill-child"],
        ["unshare", "-Urpf", "--mount-proc", "--kill-child"]):
        try:
            if subprocess.run(way + ["true"], capture_output=True, check=False).returncode == 0:
                return way
        except OSError:
            break
    return []


class Base:
    """The unchanged tree, built, and its tests with the time that each takes."""
    def __init__(self, root, scratch, o):
        self.scratch, self.jobs, self.around = scratch, o.jobs, private()
        self.patience, self.budget = o.patience, o.budget
        self.tree, self.build = scratch + "/tree", scratch + "/base"
        self.log, self.cover = scratch + "/build.log", scratch + "/cover.o"
        os.makedirs(self.tree, exist_ok=True)
        tree_copy(root, self.tree)
        must(["cc", "-O2", "-fPIC", "-c", "-o", self.cover, os.path.join(os.path.dirname(
            os.path.abspath(__file__)), "mutate_cover.c")], self.log)
        must(["cmake", "-S", self.tree, "-B", self.build, "-G", "Unix Makefiles",
            "-DCMAKE_BUILD_TYPE=Mutate", "-DTERN_INTERNAL_SHARED=ON", "-DTERN_WERROR=OFF",
            # A hidden name of the library would be hidden from the tests, too.
            "-DCMAKE_C_FLAGS=-O1 -fno-inline -g1 -gdwarf-4 -w -fsanitize-coverage=trace-pc "
            "'-Dvisibility(x)=' -ffile-prefix-map=" + self.tree + "=.",
            "-DCMAKE_EXE_LINKER_FLAGS=" + self.cover,
            "-DCMAKE_SHARED_LINKER_FLAGS=" + self.cover,
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON"], self.log)
        with open(self.build + "/compile_commands.json", encoding="utf-8") as f:
            commands = json.load(f)
        self.compile = {}
        for c in commands:
            source = os.path.relpath(c["file"], self.tree)
            words = shlex.split(c["command"])
            self.compile[os.path.normpath(os.path.join(c["directory"], words[words.index("-o") + 1]))] = \
                (source, c["directory"], words)
        objects = self.build + "/CMakeFiles/tern_objects.dir/"
        self.objects = {source: o for o, (source, _, _) in self.compile.items()
            if o.startswith(objects)}
        self.seconds = {} # of a test; None: it cannot be used
        self.lines = {} # of a test: {path: lines that it executes}
        self.blocks = {} # of a program or library: {offset of a block: its lines}
        self.kept = scratch + "/tests" # one file for each: what was measured of it
        os.makedirs(self.kept, exist_ok=True)

    def list_tests(self):
        """From the files of ctest itself, which names no program that is not built yet."""
        self.tests = {}
        for folder, _, names in os.walk(self.build):
            if "CTestTestfile.cmake" in names:
                with open(folder + "/CTestTestfile.cmake", encoding="utf-8") as f:
                    self.read_tests(f.read())
        if not self.tests:
            sys.exit(f"mutate: no tests are listed below {self.build}")

    def read_tests(self, text):
        """Arguments are in brackets, quoted or bare, as the version of cmake likes it."""
        def words(line):
            for m in re.finditer(r'\[(=*)\[(.*?)\]\1\]|"((?:\\.|[^"\\])*)"|([^\s"]+)', line):
                yield m.group(2) or m.group(4) or re.sub(r"\\(.)", r"\1", m.group(3) or "")
        commands = {}
        for what, line in re.findall(r"(?m)^(add_test|set_tests_properties)\((.*)\)$", text):
            name, *rest = words(line)
            if what == "add_test":
                commands[name] = rest
                continue
            of = dict(zip(rest[1::2], rest[2::2])) # behind PROPERTIES
            chosen = name in YET or LEFT_OUT.isdisjoint(of.get("LABELS", "").split(";"))
            if name in commands and chosen:
                self.tests[name] = (commands[name], [e for e in of.get("ENVIRONMENT", "").split(";") if e],
                    of.get("WORKING_DIRECTORY") or self.tree)

    def build_all(self, names):
        targets = ["all"]
        for name in names:
            command = " ".join(self.tests[name][0])
            targets += [os.path.basename(p) for p in re.findall(r"\S+/bin/\S+", command)]
            if "bash" in self.tests[name][0][0]: # a script may start any program
                targets.append("tests")
                break
        targets = sorted(set(targets) - {"tern"})
        build = ["cmake", "--build", self.build, "-j", str(self.jobs), "--target"]
        must(build + ["tern_internal"], self.log)
        with open(self.log, "a", encoding="utf-8") as out:
            subprocess.run(build + targets + ["--", "-k"], stdout=out, stderr=out, check=False)
        for name in names:
            programs = [w for w in self.tests[name][0] if w.startswith(self.build + "/bin/")]
            if not all(map(os.path.exists, programs)):
                self.seconds[name] = None
                print(f"left out: {name}: its program cannot be built; {self.log} says why", flush=True)

    def includes(self, header):
        """Objects that were compiled with it."""
        if not hasattr(self, "deps"):
            self.deps = {}
            for o in self.compile:
                if os.path.exists(o + ".d"):
                    with open(o + ".d", encoding="utf-8") as f:
                        self.deps[o] = set(f.read().replace("\\\n", " ").split())
        path = os.path.join(self.tree, header)
        return [o for o, d in self.deps.items() if path in d]

    def state(self, name):
        """A digest of the library and of a test: what was measured holds while it is the same."""
        if not hasattr(self, "library"):
            self.library = hashlib.sha256()
            for path in sorted(glob.glob(self.tree + "/include/**/*.h", recursive=True) +
                glob.glob(self.tree + "/src/**/*.[ch]", recursive=True)):
                if not path.endswith("_test.c"):
                    with open(path, "rb") as f:
                        self.library.update(f.read())
        digest = self.library.copy()
        for path in glob.glob(self.tree + "/" + re.sub(r"(_test)\b.*", r"\1.*", name)):
            with open(path, "rb") as f:
                digest.update(f.read())
        return digest.hexdigest()

    def recall(self, name):
        """What was measured of a test before, if it still holds."""
        path = f"{self.kept}/{name.replace('/', ' ')}"
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                state, seconds, lines = json.load(f)
            if state == self.state(name):
                self.seconds[name], self.lines[name] = seconds, lines

    def keep(self, name):
        with open(f"{self.kept}/{name.replace('/', ' ')}", "w", encoding="utf-8") as f:
            json.dump((self.state(name), self.seconds[name], self.lines[name]), f)

    def inside(self, path):
        """What the tree calls a file of debug information, which may be seen from the build."""
        path = os.path.normpath(path)
        for m in re.finditer(r"/(?=src/|include/)", path):
            if os.path.exists(os.path.join(self.tree, path[m.end():])):
                return path[m.end():]
        return None

    def blocks_of(self, path):
        """Lines of each block, by the address to which its call of mutate_cover.c returns."""
        blocks, lines, where, called, inside = {}, set(), None, False, {}
        shown = subprocess.Popen(["objdump", "-dl", "--no-show-raw-insn", path],
            stdout=subprocess.PIPE, text=True, errors="replace")
        for text in shown.stdout:
            if text[0] == " ":
                if called:
                    blocks[int(text[:text.index(":")], 16)] = lines
                called = "trace_pc>" in text
                if called:
                    lines = {where}
            elif text.endswith(">:\n"): # a function begins, with registers that it saves
                lines = set()
            elif m := re.match(r"(/\S+):(\d+)", text):
                if m.group(1) not in inside:
                    inside[m.group(1)] = self.inside(m.group(1))
                where = (inside[m.group(1)], int(m.group(2))) if inside[m.group(1)] else None
                lines.add(where)
        shown.wait()
        return blocks

    def executed(self, folder):
        """The lines whose blocks are marked in a folder."""
        lines = set()
        for name in os.listdir(folder):
            if name not in self.blocks:
                path = next((p for d in ("bin", "lib", "libexec")
                    if os.path.exists(p := f"{self.build}/{d}/{name}")), None)
                self.blocks[name] = self.blocks_of(path) if path else {}
            with open(f"{folder}/{name}", "rb") as f:
                for m in re.finditer(b"\1", f.read()):
                    lines |= self.blocks[name].get(m.start(), set())
        paths = {}
        for path, line in lines - {None}:
            if not path.endswith("_test.c"):
                paths.setdefault(path, []).append(line)
        return paths

    def index(self):
        """Which tests execute a line, and which lines of a file have code."""
        self.of_line, self.coded = {}, {}
        for name in ("libtern_internal.so", "libtern.so"):
            if os.path.exists(f"{self.build}/lib/{name}") and name not in self.blocks:
                self.blocks[name] = self.blocks_of(f"{self.build}/lib/{name}")
        for where in {w for blocks in self.blocks.values() for lines in blocks.values()
            for w in lines if w}:
            self.coded.setdefault(where[0], set()).add(where[1])
        for name, paths in self.lines.items():
            for path, lines in paths.items():
                self.coded.setdefault(path, set()).update(lines)
                for line in lines:
                    self.of_line.setdefault((path, line), []).append(name)
        self.coded = {path: sorted(lines) for path, lines in self.coded.items()}

    def order(self, place):
        """The tests that execute a place, or the line with code before it, for the budget: those of
        the folder first, quick ones first."""
        coded = self.coded.get(place.path, [])
        at = bisect.bisect_right(coded, place.line)
        tests = self.of_line.get((place.path, coded[at - 1]), []) if at else []
        folder, spent = folder_of(place.path), 0
        for name in sorted(tests, key=lambda n: (os.path.dirname(n) != folder, self.seconds[n])):
            spent += self.seconds[name]
            if spent > self.budget and spent > self.seconds[name]:
                return
            yield name


# -- A worker ------------------------------------------------------------------------------------

class Worker:
    def __init__(self, base, number):
        self.base = base
        self.folder = f"{base.scratch}/w{number}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.tree = self.folder + "/tree"
        os.makedirs(self.folder + "/lib")
        shutil.copytree(base.tree, self.tree, copy_function=os.link, symlinks=True)
        for part in ("bin", "libexec"):
            for folder, _, files in os.walk(f"{base.build}/{part}"):
                to = self.folder + folder[len(base.build):]
                os.makedirs(to, exist_ok=True)
                for f in files:
                    os.link(os.path.join(folder, f), os.path.join(to, f))
        os.makedirs(self.folder + "/tmp")
        self.own(self.base.build + "/lib")

    def own(self, folder):
        """Takes the libraries of a folder."""
        for name in os.listdir(folder):
            if ".so" in name:
                target = f"{self.folder}/lib/{name}"
                shutil.copy2(f"{folder}/{name}", target + ".new", follow_symlinks=False)
                os.replace(target + ".new", target)

    def here(self, words):
        b = self.base
        return [w.replace(b.tree, self.tree).replace(b.build + "/bin", self.folder + "/bin")
            for w in words]

    def compiled(self, o, out, *flags):
        source, directory, words = self.base.compile[o]
        words = self.here(words) + list(flags)
        words[words.index("-o") + 1] = out
        if "-MF" in words:
            words[words.index("-MF") + 1] = out + ".d"
        done = subprocess.run(words, cwd=directory, capture_output=True, check=False)
        return done.returncode == 0

    def code(self, o):
        """What an object has besides debug information."""
        out = self.folder + "/stripped"
        subprocess.run(["strip", "-g", "-o", out, o], check=True)
        with open(out, "rb") as f:
            return f.read()

    def change(self, place, text):
        path = os.path.join(self.tree, place.path)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(path + ".new", path)

    def restore(self, place):
        path = os.path.join(self.tree, place.path)
        os.unlink(path)
        os.link(os.path.join(self.base.tree, place.path), path)

    def run(self, name, limit, stop, cover=None):
        """0: passed; 1: failed; 2: took too long; None: stopped."""
        command, environment, where = self.base.tests[name]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("TERN_", "MAKE", "MFLAGS"))}
        env.update(e.split("=", 1) for e in environment)
        env["TMPDIR"] = self.folder + "/tmp"
        if cover:
            env["COVER_TO"] = cover
        began = time.monotonic()
        with open(self.folder + "/said", "wb") as said:
            p = subprocess.Popen(self.base.around + self.here(command), cwd=self.here([where])[0],
                env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
            try:
                while p.poll() is None:
                    if time.monotonic() - began > limit or stop.is_set():
                        return None if stop.is_set() else 2
                    try:
                        p.wait(0.02 if time.monotonic() - began < 1 else 0.2)
                    except subprocess.TimeoutExpired:
                        pass
            finally:
                try:
                    os.killpg(p.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                p.wait()
                self.took = time.monotonic() - began
        return 77 if p.returncode == 77 else int(p.returncode != 0)

    # A change ------------------------------------------------------------------------------

    def objects_of(self, place):
        b = self.base
        if place.path.endswith(".c"):
            return [b.objects[place.path]]
        mine = set(b.objects.values())
        return [o for o in b.includes(place.path) if o in mine]

    def library(self, place):
        """Links a library with the change; why not, else."""
        b, changed = self.base, {}
        out = self.folder + "/new"
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        for i, o in enumerate(self.objects_of(place)):
            if not self.compiled(o, f"{out}/{i}.o"):
                return "does not compile"
            if self.code(o) != self.code(f"{out}/{i}.o"):
                changed[os.path.relpath(o, b.build)] = f"{out}/{i}.o"
        if not changed and (place.path.endswith(".c") or not self.programs(place)):
            return "same code"
        for target in ("tern_internal", "tern"): # for tests, and for examples and programs of papers
            command = f"{b.build}/CMakeFiles/{target}.dir/link.txt"
            if os.path.exists(f"{b.build}/lib/lib{target}.so"):
                with open(command, encoding="utf-8") as f:
                    words = [changed.get(w, w) for w in shlex.split(f.read())]
                at = words.index("-o") + 1
                words[at] = f"{out}/{os.path.basename(words[at])}"
                if subprocess.run(words, cwd=b.build, capture_output=True, check=False).returncode:
                    return "does not link"
        self.own(out)
        return None

    def programs(self, place):
        """Test programs that have the changed header, by the path of their unchanged one."""
        b = self.base
        return {b.build + "/bin/" + o.split("/CMakeFiles/")[1].split(".dir/")[0]: o
            for o in b.includes(place.path) if o.startswith(b.build + "/tests/")}

    def program(self, o):
        """Compiles and links a test program again; False if that fails."""
        folder, target = o.split("/CMakeFiles/")
        target = target.split(".dir/")[0]
        out = self.folder + "/new/" + target
        with open(f"{folder}/CMakeFiles/{target}.dir/link.txt", encoding="utf-8") as f:
            words = shlex.split(f.read())
        words = [out + ".o" if os.path.normpath(os.path.join(folder, w)) == o else w for w in words]
        at = words.index("-o") + 1
        program = os.path.basename(words[at])
        words[at] = out
        if not self.compiled(o, out + ".o") or \
            subprocess.run(words, cwd=folder, capture_output=True, check=False).returncode:
            return False
        os.replace(out, self.folder + "/bin/" + program)
        self.replaced.append(program)
        return True

    def same_at_o2(self, place):
        """Whether more optimization shows that the change changes nothing."""
        out = self.folder + "/new/two"
        for o in self.objects_of(place):
            texts = []
            for text in (place.text, None):
                if text:
                    self.change(place, text)
                else:
                    self.restore(place)
                if not self.compiled(o, out, "-O2"):
                    return False
                texts.append(self.code(out))
            if texts[0] != texts[1]:
                return False
        return True

    def judge(self, place, stop):
        """(result, test): noticed, timeout, survived, or why it does not count; None: stopped."""
        self.replaced = []
        self.change(place, place.text)
        try:
            why = self.library(place)
            if why:
                return why, ""
            return self.tried(place, stop)
        finally:
            self.restore(place)
            self.own(self.base.build + "/lib")
            for program in self.replaced:
                target = f"{self.folder}/bin/{program}"
                os.unlink(target)
                os.link(f"{self.base.build}/bin/{program}", target)

    def tried(self, place, stop):
        b = self.base
        programs = {} if place.path.endswith(".c") else self.programs(place)
        tests = list(b.order(place))
        if not tests:
            return "not executed", ""
        for name in tests:
            for path in b.tests[name][0]:
                if path in programs and not self.program(programs.pop(path)):
                    return "does not compile", ""
            limit = max(b.patience, 5 * b.seconds[name])
            result = self.run(name, limit, stop)
            if result == 1: # a busy machine may be the reason; then it passes the second time
                result = self.run(name, limit, stop)
            if result is None:
                return None, ""
            if result in (1, 2):
                return ("noticed" if result == 1 else "timeout"), name
        if place.path.endswith(".c") and self.same_at_o2(place):
            return "same code", ""
        return "survived", ""


# -- The run -------------------------------------------------------------------------------------

COUNTED = ("noticed", "timeout", "survived", "not executed")


def in_pool(workers, jobs, work):
    """work(worker, job) for each of an iterator of jobs, on all workers."""
    lock = threading.Lock()
    def loop(worker):
        while True:
            with lock:
                job = next(jobs, None)
            if job is None:
                return
            work(worker, job)
    with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
        for done in [pool.submit(loop, w) for w in workers]:
            done.result()


def measure(base, workers, names, stop):
    """How long each test takes unchanged, and what it executes; one that does not pass is left out."""
    lock = threading.Lock()
    def one(worker, name):
        cover = worker.folder + "/cover"
        shutil.rmtree(cover, ignore_errors=True)
        os.makedirs(cover)
        result = worker.run(name, 300, stop, cover)
        if result == 1:
            result = worker.run(name, 300, stop, cover)
        if result is None:
            return
        with lock:
            base.seconds[name] = round(worker.took, 2) if result == 0 else None
            if result == 0:
                base.lines[name] = base.executed(cover)
                base.keep(name)
            else:
                print(f"left out: {name} {'is skipped' if result == 77 else 'fails'} unchanged", flush=True)
    for name in names:
        base.recall(name)
    in_pool(workers, iter([n for n in names if n not in base.seconds]), one)
    base.index()


def summary(records, seed, out=sys.stdout):
    folders = {}
    for r in records:
        folders.setdefault(folder_of(r["path"]), []).append(r)
    def line(name, some):
        n = {c: sum(r["result"] == c for r in some) for c in COUNTED}
        seen = n["noticed"] + n["timeout"]
        print(f"{name:24} {len(some):5} {seen:8} {n['timeout']:8} {n['survived']:9} {n['not executed']:12} "
            f"{100 * seen / max(1, len(some)):6.1f} %", file=out)
    for title, result in (("Nobody noticed:", "survived"), ("No test executes:", "not executed"),
        ("Noticed by a timeout:", "timeout")):
        some = [r for r in records if r["result"] == result]
        if some:
            print("\n" + title, file=out)
        for r in sorted(some, key=lambda r: (r["path"], r["line"])):
            print(f"  {r['path']}:{r['line']}: {r['kind']}: {r['old']} -> {r['new'] or '(nothing)'}"
                + (f" [{r['test']}]" if r["test"] else ""), file=out)
    print(f"\n{'folder':24} {'tried':>5} {'noticed':>8} {'timeouts':>8} {'survivors':>9} "
        f"{'not executed':>12}", file=out)
    for name in sorted(folders):
        line(name, folders[name])
    line(f"all, seed {seed}", records)


def arguments():
    a = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    a.add_argument("--seed", type=int, default=int(time.time()))
    a.add_argument("--count", type=int, default=300, help="changes to try; 300 unless said")
    a.add_argument("--folder", default="", help="only files whose path begins so, as src/ring")
    a.add_argument("--jobs", type=int, default=os.cpu_count())
    a.add_argument("--limit", type=float, default=0, help="seconds after which it ends, with what it has")
    a.add_argument("--patience", type=float, default=10, help="seconds that a test has at least; five "
        "times as long as unchanged, if that is more")
    a.add_argument("--budget", type=float, default=60, help="seconds of tests for one change")
    a.add_argument("--tests", default="", help="a regular expression: only these tests")
    a.add_argument("--list", action="store_true", help="lists the lines of changes that no test "
        "executes, and tries none")
    a.add_argument("--shard", default="1/1", help="I/N: every N-th place, from the I-th on")
    a.add_argument("--out", help="a file that gets a line of JSON for each place; tried places are not "
        "tried again")
    a.add_argument("--csv", help="a file for the same as a table")
    a.add_argument("--scratch", help="a folder to build in, which is kept; a temporary one unless said")
    a.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    a.add_argument("--at", help="FILE:LINE: every change of this line, and nothing else")
    return a.parse_args()


def chosen_places(base, o):
    files = [f for f in base.objects if not f.startswith("..") and os.path.exists(f"{base.tree}/{f}")]
    for d in ("src", "include"):
        for folder, _, names in os.walk(f"{base.tree}/{d}"):
            files += [os.path.relpath(os.path.join(folder, n), base.tree) for n in names
                if n.endswith(".h")]
    files = sorted(f for f in files if f.startswith(o.folder) and
        not f.startswith(("src/tools/", "src/check/")))
    places = [p for f in files for p in places_of(base.tree, f)]
    if o.at:
        return [p for p in places if f"{p.path}:{p.line}" == o.at]
    random.Random(o.seed).shuffle(places)
    shard, of = map(int, o.shard.split("/"))
    return places[shard - 1::of]


def tried_before(o):
    if not o.out or not os.path.exists(o.out):
        return {}
    with open(o.out, encoding="utf-8") as f:
        return {r["key"]: r for r in map(json.loads, f) if r["seed"] == o.seed}


def changes(base, workers, places, o, stop):
    """Tries places in their order until enough of them count; the records of those."""
    before, lock, records = tried_before(o), threading.Lock(), {}
    counted = lambda: sum(r["result"] in COUNTED for r in records.values())
    def jobs():
        for i, place in enumerate(places):
            if stop.is_set() or counted() >= o.count:
                return
            if place.key in before:
                records[i] = before[place.key]
            else:
                yield i, place
    def one(worker, job):
        i, place = job
        began = time.monotonic()
        result, test = worker.judge(place, stop)
        if result is None:
            return
        r = dict(place.record(), result=result, test=test, seed=o.seed,
            seconds=round(time.monotonic() - began, 1))
        with lock:
            records[i] = r
            if o.out:
                with open(o.out, "a", encoding="utf-8") as f:
                    f.write(json.dumps(r) + "\n")
            if result in COUNTED:
                print(f"{counted():4}/{o.count} {result:8} {place.path}:{place.line} {place.kind} "
                    f"{test} {r['seconds']} s", flush=True)
    in_pool(workers, jobs(), one)
    return [records[i] for i in sorted(records) if records[i]["result"] in COUNTED][:o.count]


def main():
    o, stop = arguments(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set()) # no test is left running
    scratch = os.path.realpath(o.scratch or tempfile.mkdtemp(prefix="tern-mutate."))
    os.makedirs(scratch, exist_ok=True)
    if o.limit:
        timer = threading.Timer(o.limit, stop.set)
        timer.daemon = True
        timer.start()
    try:
        base = Base(os.path.realpath(o.root), scratch, o)
        places = chosen_places(base, o)
        print(f"seed {o.seed}: {len(places)} places" + (f" in {o.folder}" if o.folder else ""), flush=True)
        base.list_tests()
        names = sorted(n for n in base.tests if re.search(o.tests, n))
        base.build_all(names)
        names = [n for n in names if n not in base.seconds]
        workers = [Worker(base, i) for i in range(o.jobs)]
        measure(base, workers, names, stop)
        if o.list:
            for place in sorted(places, key=lambda p: (p.path, p.line)):
                if not next(base.order(place), None):
                    print(f"{place.path}:{place.line}: {place.kind}: {place.record()['old']}")
            return
        records = changes(base, workers, places, o, stop)
    finally:
        if not o.scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    if o.csv:
        with open(o.csv, "w", encoding="utf-8", newline="") as f:
            table = csv.DictWriter(f, ["seed", "path", "line", "kind", "result", "test", "seconds", "old",
                "new", "key"])
            table.writeheader()
            table.writerows(records)
    summary(records, o.seed)
    if stop.is_set():
        print("It ended at its limit; --out FILE goes on from there.")


if __name__ == "__main__":
    main()
