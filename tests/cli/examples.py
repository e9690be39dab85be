# SPDX-License-Identifier: BSD-3-Clause
"""Every example in the documents runs and exits 0.

An example is a line that starts with "$ " in a verbatim paragraph of a manual page, or in a fenced block marked
`console` in README.md or docs/*.md. Lines that start with "> " continue it; the other lines of the block are its
output and are not compared. A document's examples run in order, in one empty folder in which `experiments` and
`examples` link to the repository's, with the program on PATH; three documents at a time, since most examples wait.
examples.py DOCUMENT... runs only those of the named documents."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["WEIR_SOURCE"])
LIMIT = 120  # seconds for one example; a reader would not wait longer either


def verbatim(text):
    """Return the verbatim lines of a POD page, without their indentation."""
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph[:1] in (" ", "\t"):
            lines = paragraph.splitlines()
            indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
            yield [line[indent:] for line in lines]


def fenced(text):
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        yield block.splitlines()


def examples(path):
    text = path.read_text()
    for lines in (verbatim if path.suffix == ".pod" else fenced)(text):
        command = []
        for line in lines:
            if line.startswith("$ "):
                if command:
                    yield "\n".join(command)
                command = [line[2:]]
            elif command and line.startswith("> "):
                command.append(line[2:])
            elif command and line == ">":
                command.append("")
            elif command:
                yield "\n".join(command)
                command = []
        if command:
            yield "\n".join(command)


def run(path):
    """Return the number of examples that ran, and a list of those that failed."""
    ran, failed = 0, []
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for name in ("experiments", "examples"):
            os.symlink(SOURCE / name, pathlib.Path(folder, name))
        for command in examples(path):
            ran += 1
            try:
                done = subprocess.run(["sh", "-c", command], cwd=folder, timeout=LIMIT, text=True,
                                      errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, env={**os.environ, "WEIR_SOCKET": "default.sock"})
                problem = f"exit status {done.returncode}\n{done.stdout}" if done.returncode else ""
            except subprocess.TimeoutExpired:
                problem = f"took over {LIMIT} s"
            text = f"{path.name}: $ {command}" + (f"\nFAILED: {problem}" if problem else "")
            failed += [text] if problem else []
            print(text, flush=True)
    return ran, failed


documents = [pathlib.Path(a) for a in sys.argv[1:]] or sorted(
    [*SOURCE.glob("README.md"), *SOURCE.glob("docs/*.md"), *SOURCE.glob("docs/man/*.pod")])
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    total = list(pool.map(run, documents))
ran, failed = sum(n for n, _ in total), [text for _, list_ in total for text in list_]
print(*failed, f"{len(documents)} documents, {ran} examples, {len(failed)} failed", sep="\n")
sys.exit(1 if failed or not ran else 0)
