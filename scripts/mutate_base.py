# SPDX-License-Identifier: BSD-3-Clause
"""The unchanged tree of scripts/mutate.py, built in a scratch folder, and what its tests execute."""
import bisect
import glob
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

from mutate_places import words_of

# Left out for their time, or because they look at the tree rather than at the library.
LEFT_OUT = {"soak", "slow", "perf", "once"}
YET = {"tests/seeds/crossings_test"} # every layer is in it


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
            "-DCMAKE_BUILD_TYPE=Mutate", "-DTERN_SANITIZE=" + o.sanitize, "-DTERN_INTERNAL_SHARED=ON", "-DTERN_WERROR=OFF",
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

    def line_of(self, place):
        """The line that debug information gives the place: the first with code from its own line to
        its last, or else the one before it."""
        coded = self.coded.get(place.path, [])
        at = bisect.bisect_left(coded, place.line)
        if at < len(coded) and coded[at] <= place.line + place.old.count("\n"):
            return coded[at]
        return coded[at - 1] if at else 0

    def order(self, place):
        """The tests that execute a place, for the budget: those that have most words of its path in
        their own first, of these the quick ones first."""
        tests = self.of_line.get((place.path, self.line_of(place)), [])
        words, spent = words_of(place.path), 0
        for name in sorted(tests, key=lambda n: (-len(words & words_of(n)), self.seconds[n])):
            spent += self.seconds[name]
            if spent > self.budget and spent > self.seconds[name]:
                return
            yield name
