# SPDX-License-Identifier: BSD-3-Clause
"""Check the four recipes of docs/contributing.md against the tree: every file that they name exists, the lists that they name hold
what they say, and no file of another folder names a controller, front end or back end."""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ["WEIR_SOURCE"])
PLUGS = [  # recipe, the list's file and name, the definition, files of one (a folder, or a prefix)
    ("A new controller", "src/control/meson.build", "controllers", "const struct controller {}_controller =", "src/control/{}/"),
    ("A new front end", "src/serve/front/meson.build", "fronts", "const struct front_ops front_{}_ops =", "src/serve/front/{}/"),
    ("A new back end", "src/serve/back/meson.build", "backs", "const struct back_kind back_{}_kind =", "src/serve/back/{}"),
    ("A new verb", "src/cli/meson.build", "verbs", "const struct verb verb_{} =", "src/cli/{}"),
]


def sources():
    for folder in ("src", "bench"):
        for path in (ROOT / folder).rglob("*.[ch]"):
            yield str(path.relative_to(ROOT)), path.read_text()


def faults():
    page = (ROOT / "docs/contributing.md").read_text()
    texts = dict(sources())
    for recipe, file, name, definition, own in PLUGS:
        part = re.search(rf"^### {recipe}\n(.*?)^##", page, re.M | re.S)
        if not part or f"`{name}` in `{file}`" not in " ".join(part.group(1).split()):
            yield f"{recipe}: does not say 'the list `{name}` in `{file}`'"
            continue
        for path in re.findall(r"`((?:src|tests|docs|include)/[\w./-]+)`", part.group(1)):
            if not (ROOT / path).exists():
                yield f"{recipe}: {path} does not exist"
        found = re.search(rf"^{name} = \[(.*?)\]", (ROOT / file).read_text(), re.M | re.S)
        for one in re.findall(r"'([\w-]+)'", found.group(1) if found else ""):
            where = [p for p, text in texts.items() if definition.format(one) in text]
            if len(where) != 1 or not where[0].startswith((own.format(one), f"bench/{one}")):
                yield f"{recipe}: '{definition.format(one)}' is in {where or 'no file'}"
            entry = re.search(r"(\w+) =$", definition.format(one)).group(1)
            for path, text in texts.items():
                own_file = path.startswith(own.format(one)) or name == "verbs"
                if not own_file and re.search(rf"\b{entry}\b", text):
                    yield f"{recipe}: {path} names {entry}"
        if not found:
            yield f"{recipe}: {file} has no list {name}"


found = list(faults())
print("\n".join(found))
sys.exit(bool(found))
