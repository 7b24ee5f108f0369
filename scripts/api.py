#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/api.py: writes docs/api.md to standard output: docs/api.md.in, then what the public
headers declare, in their order and under their headings, each with the first sentence of its
comment. A macro that takes words has the signature of its man page; a constant has its value.
Functions that macros and inline calls use and programs do not end in _ and are left out."""
import glob
import os
import re
import textwrap

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

HEADERS = "tern op mem lock send buf chan async thread sequence coll post stats sim".split()
TOKEN = re.compile(r"/\*.*?\*/|^#(?:[^\n\\]|\\.|\\\n)*|\n[ \t]*\n", re.S | re.M)


def pieces(text):
    """Comments, directives, empty lines and statements; braces are not looked into. A comment
    behind a statement on its line follows it after a \\0."""
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found:
            yield found.group()
            at = found.end()
        elif text[at].isspace():
            at += 1
        else:
            start, depth = at, 0
            while at < len(text):
                comment = re.compile(r"/\*.*?\*/", re.S).match(text, at)
                if comment:
                    at = comment.end()
                    continue
                depth += {"{": 1, "}": -1}.get(text[at], 0)
                at += 1
                if depth == 0 and (text[at - 1] == ";" or text[at - 1] == "}" and
                                   re.match(r"[^;=]*\)\s*\{", text[start:at])):
                    break
            behind = re.compile(r"[ \t]*(/\*.*?\*/)", re.S).match(text, at)
            if behind:
                at = behind.end()
                yield text[start:behind.start()] + "\0" + sentence(behind.group(1))
            else:
                yield text[start:at]


def bare(comment):
    return re.sub(r"^\s*\* ?", "", comment[2:-2], flags=re.M).strip()


def sentence(comment):
    """The first sentence of a comment, as a comment."""
    words = " ".join(bare(comment).split())
    words = re.match(r".*?[.:](?= [A-Z`]|$)|.*", words).group()
    lines = textwrap.wrap(words, 94)
    if len(lines) == 1:
        return "/* %s */" % lines[0]
    return "/* %s */" % "\n   ".join(lines)


def synopses():
    """Signatures of macros, from the man pages."""
    found = {}
    for page in glob.glob("man/*.3"):
        kind, inside = "", False
        for line in open(page):
            if line.startswith(".Sh "):
                inside = "SYNOPSIS" in line
            if not inside:
                continue
            if line.startswith(".Ft "):
                kind = line[4:].strip().strip('"')
            elif line.startswith(".Fn "):
                name, *rest = re.findall(r'"[^"]*"|\S+', line[4:])
                found[name] = "%s %s(%s);" % (kind, name, ", ".join(p.strip('"') for p in rest))
    return found


def broken(text, width=98):
    """Broken between parameters."""
    lines = [""]
    for part in re.split(r"(?<=,) ", text):
        if len(lines[-1]) + len(part) > width:
            lines.append("   ")
        lines[-1] += (" " if lines[-1] else "") + part
    return "\n".join(lines)


def declaration(text):
    """One declaration, broken at 100 columns; None if programs do not use it."""
    text, _, behind = text.partition("\0")
    text = signature(text)
    if not text or not behind:
        return text
    last = text.rsplit("\n", 1)[-1]
    return text + " " + behind if len(last) + len(behind) < 100 else behind + "\n" + text


def signature(text):
    text = re.sub(r"\b(TERN_INLINE_|TERN_BEGIN_|TERN_END_|static inline)\s", "", text).strip()
    if re.match(r"(typedef|enum|struct|union)\b", text) and not re.match(r"[^({]*\w\(", text):
        name = re.match(r"(?:typedef )?(?:struct|enum|union) (\w+)", text)
        layout = name and name.group(1) in LAYOUT and "{" in text
        return None if layout or not text.endswith(";") else text.replace("\t", "    ")
    if text.startswith("typedef"):
        return text
    text = re.sub(r"\s+", " ", text.split("{")[0].strip().rstrip(";")) + ";"
    name = re.search(r"\b(_?tern_[a-z0-9_]+)\(", text)
    if not name or name.group(1)[-1] == "_" or name.group(1) in SEEN:
        return None
    SEEN.add(name.group(1))
    return broken(text)


SEEN = set()
LAYOUT = {"tern_msg", "tern_lane", "tern_inlet", "tern", "tern_chan_line", "tern_chan_place",
          "tern_kind", "tern_words_of_"}


def constant(piece):
    """A macro that is a value, or takes one; None of what programs do not use."""
    found = re.match(r"#define (TERN_\w*[A-Z])(\(\w+\))?\s+(.*)", piece, re.S)
    if not found:
        return None
    value, _, behind = found.group(3).partition("/*")
    value = " ".join(value.replace("\\\n", " ").split())
    text = "#define %s%s" % (found.group(1), found.group(2) or " " + value)
    return text + (" " + sentence("/*" + behind) if behind else "")


def section(header, macros):
    text = open("include/tern/%s.h" % header).read()
    text = re.sub(r"^#if(?:def|) .*__cplusplus.*?^#endif[^\n]*$", lambda m: "".join(
        re.findall(r"^#define tern_on\(.*?\n", m.group(), re.M)), text, flags=re.S | re.M)
    text = re.sub(r"^TERN_(BEGIN|END)_$", "", text, flags=re.M)
    out, note, hidden, first, gap = [], None, False, True, False
    for piece in pieces(text):
        if piece.startswith("/*"):
            banner = re.match(r"/\* -- (.*?) -*\s*\*/", piece, re.S)
            if "SPDX" in piece or "cost:" in piece:
                continue
            if first:
                lead = bare(piece).split("\n\n")[0]
                out.append("\n".join(textwrap.wrap(" ".join(lead.split()), 100)))
                out += ["", "```c"]
                first = False
            elif banner:
                hidden = "inline" in banner.group(1)
                out += [] if hidden else ["", "/* == %s == */" % banner.group(1)]
            else:
                note = piece
            continue
        if not piece.strip():
            gap = True
            continue
        macro = re.match(r"#define (tern_[a-z0-9_]+)\(", piece)
        said = None
        if macro and macro.group(1) not in SEEN:
            if macro.group(1)[-1] != "_":
                said = declaration(macros[macro.group(1)])
        elif hidden and re.match(r"typedef struct \w+ \{", piece):
            out.append(re.sub(r"\s*\{.*\}", "", piece.partition("\0")[0], flags=re.S))
        elif piece.startswith("#"):
            said = constant(piece)
        else:
            said = declaration(piece)
        if said and not hidden:
            if note or gap:
                out.append("")
            if note:
                out.append(sentence(note))
            out.append(said)
            note, gap = None, False
        elif not piece.startswith("#"):
            note = None
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).replace("```c\n\n", "```c\n") + "\n```\n"


print(open("docs/api.md.in").read().rstrip())
MACROS = synopses()
for each in HEADERS:
    print("\n## tern/%s.h\n" % each)
    print(section(each, MACROS), end="")
