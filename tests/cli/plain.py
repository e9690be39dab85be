#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count words and phrases that make comments, messages and documents hard to read.

    plain.py [--list] [--limit N] [PATH...]

Print the count of each habit per 10,000 words, with --list also every place. Exit with 1 if a rate is above the
limit. Without PATH, check the folders of TREES below WEIR_SOURCE or the working directory.

The words are read from comments and string literals of C files; from the text of Markdown files without code; from
the text of manual pages without examples; from comments of shell, Python, YAML and Meson files and from docstrings.
String literals are searched but not counted as words: most of them in the tests are not prose.
"""
import argparse
import os
import pathlib
import re
import sys

LIMIT = 3.0  # of each habit, per 10,000 words
TREES = ["src", "include", "bench", "tests", "fuzz", "docs", "experiments", "examples", "README.md"]
HABITS = {
    "the words %s" % words.replace("|", " and "): re.compile(r"\b(?:%s)\b" % words, re.IGNORECASE)
    for words in ("w" "ho|w" "hoever", "some" "body|no" "body", "in v" "ain")
}
# A full stop, colon or the like and one space before it, or the start of the paragraph; no question mark after it.
HABITS["sentences that begin with What"] = re.compile(r"(?:\A[Ww]|(?:(?<=[.!?:;)][ \n])|(?<=\n\n))W)hat\b(?![^.!?]*\?)")
WORD = re.compile(r"[A-Za-z][A-Za-z'’]*")
C_PARTS = re.compile(r"/\*(?P<block>.*?)\*/|//(?P<line>[^\n]*)|\"(?P<text>(?:[^\"\\\n]|\\.)*)\"|'(?:[^'\\\n]|\\.)+'",
                     re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
POD_MARKUP = re.compile(r"^=(?:begin|end|cut|pod|encoding|for|over|back)\b.*$|^[ \t].*$", re.MULTILINE)
COMMENT = re.compile(r"^\s*#(?!!)\s?(.*)$|\s#\s(.*)$")
DOCSTRING = re.compile(r'^[ \t]*"""(.*?)"""', re.DOTALL | re.MULTILINE)
END = "\0"  # between two paragraphs
MESSAGE = "\1"  # before a string literal


def blank(found):
    """Return the newlines of a match, so that line numbers stay right."""
    return "\n" * found.group(0).count("\n")


def words_of_c(text):
    out, at = [], 0
    for part in C_PARTS.finditer(text):
        out.append("\n" * text.count("\n", at, part.start()))
        comment = part["block"] if part["block"] is not None else part["line"]
        if comment is not None:
            out.append(END + re.sub(r"(?m)^\s*\*", "", comment) + END)
        elif part["text"] and " " in part["text"]:
            out.append(END + MESSAGE + part["text"] + END)
        at = part.end()
    return "".join(out)


def words_of_markdown(text):
    return CODE.sub(blank, text)


def words_of_pod(text):
    """Return the text of a manual page, a paragraph of which ends with an empty line."""
    return re.sub(r"\n(?=\n)", END + "\n", POD_MARKUP.sub(blank, text))


def words_of_hash(text):
    out = []
    for line in text.split("\n"):
        found = COMMENT.search(line)
        out.append((found.group(1) or found.group(2) or "") if found else END)
    return "\n".join(out)


def words_of_python(text):
    """Return comments and, on their lines, docstrings."""
    lines = words_of_hash(text).split("\n")
    for found in DOCSTRING.finditer(text):
        first = text.count("\n", 0, found.start())
        body = (END + found.group(1)).split("\n")
        lines[first:first + len(body)] = body
        lines[first + len(body) - 1] += END
    return "\n".join(lines)


READERS = {
    ".c": words_of_c, ".h": words_of_c, ".inc": words_of_c, ".md": words_of_markdown, ".py": words_of_python,
    ".sh": words_of_hash, ".yaml": words_of_hash, ".build": words_of_hash,
    ".pod": words_of_pod,
}


def paragraphs(path):
    """Yield (number of the first line, text) for each paragraph of a file, with one space between words."""
    reader = READERS.get(path.suffix)
    if not reader:
        return
    line = 1
    for part in reader(path.read_text(errors="replace")).split(END):
        body = part.lstrip()
        first = line + part[:len(part) - len(body)].count("\n")
        yield first, re.sub(r"[ \t]*\n[ \t]*", "\n", body)
        line += part.count("\n")


def files(top):
    return sorted(path for path in top.rglob("*") if path.is_file()) if top.is_dir() else [top]


def count(paths):
    """Return the number of words (without string literals) and {habit: places} of all files below the paths."""
    words, places = 0, {habit: [] for habit in HABITS}
    for path in (path for top in paths for path in files(top)):
        for first, text in paragraphs(path):
            words += 0 if text.startswith(MESSAGE) else len(WORD.findall(text))
            text = text.removeprefix(MESSAGE)
            for habit, pattern in HABITS.items():
                for found in pattern.finditer(text):
                    line = first + text.count("\n", 0, found.start())
                    near = " ".join(text[max(0, found.start() - 40):found.end() + 50].split())
                    places[habit].append(f"{path}:{line}: {near}")
    return words, places


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print every place")
    parser.add_argument("--limit", type=float, default=LIMIT, help="per 10,000 words (default: %(default)s)")
    parser.add_argument("paths", nargs="*", type=pathlib.Path, metavar="PATH")
    options = parser.parse_args()
    root = pathlib.Path(os.environ.get("WEIR_SOURCE", "."))
    words, places = count(options.paths or [root / tree for tree in TREES])
    if not words:
        print("no text found")
        return 1
    failed = False
    for habit, found in places.items():
        rate = 1e4 * len(found) / words
        failed |= rate > options.limit
        print(f"{habit:32} {len(found):5}, {rate:5.1f} per 10,000 words{', too many' if rate > options.limit else ''}")
        if options.list:
            print("\n".join(f"  {place}" for place in found))
    print(f"{words} words")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
