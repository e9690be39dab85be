# SPDX-License-Identifier: BSD-3-Clause
"""The manual pages match the program: every verb has a page, every option is in it with its letter and argument, and
every option in a page exists. (pages3.py checks section 3.)"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

MAN = pathlib.Path(os.environ["WEIR_SOURCE"], "docs", "man")
OPTION = re.compile(r"B<--([a-z0-9-]+)>(?:[ =]I<([^>]+)>)?")
LETTER = re.compile(r"B<-([A-Za-z0-9])>")


def tables():
    """Return {verb: {option: (letter, argument)}} of the program, - for none."""
    found = {}
    text = subprocess.run([os.environ["WEIR"], "--dump-options"], check=True, capture_output=True,
                          text=True).stdout
    for line in text.splitlines():
        verb, option, letter, argument = line.split(" ", 3)
        found.setdefault(verb, {})[option] = (letter, argument)
    return found


def items(page):
    """Return {option: (letter, argument)} of the page's =item lines."""
    found = {}
    for line in page.read_text().splitlines():
        if not line.startswith("=item "):
            continue
        letter = LETTER.search(line)
        for option, argument in OPTION.findall(line):
            found[option] = (letter.group(1) if letter else "-", argument or "-")
    return found


def compare(page, table):
    written = items(page)
    for option in sorted(table.keys() | written.keys()):
        if option not in written:
            yield f"{page.name}: --{option} has no =item"
        elif option not in table:
            yield f"{page.name}: --{option} is not an option of the program"
        elif written[option] != table[option]:
            yield (f"{page.name}: --{option} is written with letter, argument "
                   f"{written[option]}; the program has {table[option]}")


def main():
    faults = []
    pages = tables()
    for verb, table in sorted(pages.items()):
        page = MAN / ("weir.pod" if verb == "weir" else f"weir-{verb}.pod")
        if page.exists():
            faults += compare(page, table)
        else:
            faults.append(f"weir {verb} has no page docs/man/{page.name}")
    overview = (MAN / "weir.pod").read_text()
    for page in sorted(MAN.glob("weir-*.pod")):
        name, section = page.stem, "1"
        if name.endswith((".5", ".7")):
            name, section = name[:-2], name[-1]
        elif name[len("weir-"):] not in pages:
            faults.append(f"{page.name}: no such verb")
        if f"L<{name}({section})>" not in overview:
            faults.append(f"weir.pod does not link to L<{name}({section})>")
    if shutil.which("podchecker"):
        for page in sorted(MAN.glob("*.pod")):
            check = subprocess.run(["podchecker", "-warnings", "-warnings", page],
                                   capture_output=True, text=True)
            if check.returncode or "WARNING" in check.stderr:
                faults.append(check.stderr.strip())
    print("\n".join(faults) or f"{len(pages)} pages agree with the program")
    return 1 if faults else 0


sys.exit(main())
