# SPDX-License-Identifier: BSD-3-Clause
"""Section 3 of the manual matches the installed headers: every function that libweir exports is in the NAME of one
page and, declared as in its header, in the SYNOPSIS there; pages name no other functions; and every page has a
program under EXAMPLES that compiles without warnings, links and exits 0."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["WEIR_SOURCE"])
LIBRARY = pathlib.Path(os.environ["WEIR_BUILD"], "include", "libweir.a")
MAN = SOURCE / "docs" / "man"
LIMIT = 60  # seconds for one program


def headers():
    """Return the installed headers with functions, as programs include them."""
    return sorted(f"weir/{p.name}" for p in (SOURCE / "include" / "weir").glob("*.h") if p.name != "weir.h")


def plain(code):
    """Return C without comments, preprocessor lines and attributes, with uniform spacing."""
    code = re.sub(r"/\*.*?\*/", " ", code, flags=re.S)
    code = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", code, flags=re.M)
    code = re.sub(r"__attribute__\(\(.*?\)\)(?=\s*;)", "", code, flags=re.S)
    code = re.sub(r"\s+", " ", code)
    return re.sub(r"(?<=[(*]) | (?=[;),])", "", code)


def declarations():
    """Return {function: declaration}."""
    found = {}
    for header in headers():
        text = plain((SOURCE / "include" / header).read_text())
        for declaration in re.findall(r"WEIR_API ([^;]*;)", text):
            found[re.search(r"(weir_\w+)\(", declaration).group(1)] = declaration
    return found


def sections(page):
    """Return {heading: text}."""
    parts = re.split(r"^=head1 (.*)\n", page.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def names(page):
    title = sections(page)["NAME"].strip()
    return re.split(r",\s*", re.split(r"\s-\s", title)[0])


def programs(page):
    """Return the verbatim text under EXAMPLES."""
    text = sections(page).get("EXAMPLES", "")
    for block in re.findall(r"(?:^(?:[ \t].*)?\n)+", text, re.M):
        if block.strip():
            yield re.sub(r"^  ", "", block, flags=re.M).strip("\n") + "\n"


def check_names(pages, declared):
    where = {}
    for page in pages:
        own = page.name.removesuffix(".3.pod")
        if names(page)[0] != own:
            yield f"{page.name}: NAME does not begin with {own}"
        for name in names(page):
            where.setdefault(name, []).append(page)
            if name != own and name not in declared:
                yield f"{page.name}: libweir exports no {name}()"
        for name in sorted(set(re.findall(r"B<(weir_\w+)>\(\)", page.read_text()))):
            if name not in declared:
                yield f"{page.name}: libweir exports no {name}()"
    for name, declaration in sorted(declared.items()):
        if len(where.get(name, [])) != 1:
            yield f"{name}() is in the NAME of {len(where.get(name, []))} pages of section 3, not of one"
        elif declaration not in plain(sections(where[name][0])["SYNOPSIS"]):
            yield f"{where[name][0].name}: SYNOPSIS does not have: {declaration}"


def check_links(pages):
    overview = (MAN / "weir_gate.3.pod").read_text()
    known = {page.name.removesuffix(".3.pod") for page in pages}
    synopses = "".join(sections(page)["SYNOPSIS"] for page in pages)
    for name in sorted(known - {"weir_gate"}):
        if f"L<{name}(3)>" not in overview:
            yield f"weir_gate.3.pod does not link to L<{name}(3)>"
    for page in MAN.glob("*.pod"):
        for name in re.findall(r"L<(weir_\w+)\(3\)>", page.read_text()):
            if name not in known:
                yield f"{page.name}: there is no {name}(3)"
    if "L<weir_gate(3)>" not in (MAN / "weir.pod").read_text():
        yield "weir.pod does not link to L<weir_gate(3)>"
    for header in headers():
        if f"<{header}>" not in synopses:
            yield f"no page of section 3 is about <{header}>"


def run(code, name, sanitized):
    """Return the problem of a program, or None."""
    source = pathlib.Path(name + ".c")
    source.write_text(code)
    flags = ["-std=gnu17", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE}/include"]
    build = ["-fsyntax-only"] if sanitized else ["-o", name, LIBRARY, "-lyaml", "-lm"]
    try:
        done = subprocess.run(["gcc", *flags, source, *build], capture_output=True, text=True, timeout=LIMIT)
        if done.returncode:
            return f"does not compile:\n{done.stderr}"
        if sanitized:
            return None
        done = subprocess.run([f"./{name}"], capture_output=True, text=True, timeout=LIMIT)
        return f"exit status {done.returncode}\n{done.stdout}{done.stderr}" if done.returncode else None
    except subprocess.TimeoutExpired:
        return f"took over {LIMIT} s"


def check_programs(pages):
    sanitized = b"__asan_" in LIBRARY.read_bytes()
    for page in pages:
        found = list(programs(page))
        if not found:
            yield f"{page.name}: no program under EXAMPLES"
        for number, code in enumerate(found):
            problem = run(code, f"{page.name.removesuffix('.3.pod')}-{number}", sanitized)
            if problem:
                yield f"{page.name}: example {number + 1}: {problem}"


def main():
    if not shutil.which("gcc"):
        print("skipped: no gcc")
        return 77
    pages, declared = sorted(MAN.glob("*.3.pod")), declarations()
    faults = [*check_names(pages, declared), *check_links(pages), *check_programs(pages)]
    if not pages or len(declared) < 10:
        faults.append("nothing was checked")
    print("\n".join(faults) or f"{len(pages)} pages, {len(declared)} functions")
    return 1 if faults else 0


sys.exit(main())
