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
whose path is most like its own first, quick ones first, until --budget seconds of tests are spent. A
change of a line that no test executes is not tried, and is listed apart: there a test is missing.

The address sanitizer and that of undefined behaviour are on: a byte read too far, or memory that is
not given back, fails a test whether or not its result differs (--sanitize '' leaves them out).
"""
import argparse
import concurrent.futures
import csv
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

from mutate_base import Base
from mutate_places import folder_of, places_of

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
        # Some tests bring a table of their own in the place of one that the library has.
        env.setdefault("ASAN_OPTIONS", "detect_odr_violation=0")
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
    a.add_argument("--sanitize", default="address,undefined", help="sanitizers, as for -fsanitize=")
    a.add_argument("--budget", type=float, default=90, help="seconds of tests for one change")
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
