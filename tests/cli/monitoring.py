# SPDX-License-Identifier: BSD-3-Clause
"""The files for Prometheus and Grafana: promtool accepts every expression, each alert fires on series that must fire it
and not on others (tests/data/prometheus), and every metric and label is one that the program writes, as listed in
tests/data/facts, which e2e/facts compares with running gateways."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["WEIR_SOURCE"])
HERE = SOURCE / "packaging" / "prometheus"
RULES = HERE / "weir-rules.yaml"
SERIES = SOURCE / "tests" / "data" / "prometheus" / "rules-test.yaml"
OF_PROMETHEUS = {"job", "instance", "le", "on"}  # labels and words that Prometheus itself adds


def promtool(*argv):
    ran = subprocess.run(["promtool", *argv], capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"promtool {' '.join(map(str, argv))}: {ran.stdout}{ran.stderr}")


def known():
    """Return the labels of each metric that a gateway or a controller writes."""
    metrics = {}
    for names in sorted((SOURCE / "tests" / "data" / "facts").glob("*.txt")):
        for kind, name, labels in re.findall(r"^/metrics (\w+) (\w+) (\S*) *#", names.read_text(), re.M):
            for end in ("", "_bucket", "_sum", "_count") if kind == "histogram" else ("",):
                metrics.setdefault(name + end, set()).update(labels.split(","))
    return metrics


def check_names(where, expr, metrics):
    """Refuse an expression with a metric or a label that the program does not write."""
    names = re.findall(r"\b(?:weir|process)_\w+", expr)
    labels = set().union(*(metrics.get(name, set()) for name in names)) | OF_PROMETHEUS
    used = re.findall(r"(\w+) *(?:=~|!=|=)", "".join(re.findall(r"\{[^}]*\}", expr)))
    used += re.findall(r"\w+", ",".join(re.findall(r"\bby *\(([^)]*)\)", expr)))
    for name in names:
        if name not in metrics:
            sys.exit(f"{where}: no metric has the name {name}")
    for label in used:
        if label not in labels and "weir:" not in expr:
            sys.exit(f"{where}: none of {names} has the label {label}")


def dashboard_expressions():
    board = json.loads((HERE / "weir-dashboard.json").read_text())
    panels = [p for p in board["panels"] if p["type"] != "row"]
    if len({p["id"] for p in board["panels"]}) != len(board["panels"]):
        sys.exit("two panels have one id")
    for a in panels:
        at = a["gridPos"]
        for b in panels:
            of = b["gridPos"]
            if a is not b and at["x"] < of["x"] + of["w"] and of["x"] < at["x"] + at["w"] \
                    and at["y"] < of["y"] + of["h"] and of["y"] < at["y"] + at["h"]:
                sys.exit(f"the panels {a['title']} and {b['title']} overlap")
        for target in a["targets"]:
            yield a["title"], target["expr"]
    for variable in board["templating"]["list"][1:]:
        name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
        yield variable["name"], f"sum by ({label}) ({name})"


def main():
    if not shutil.which("promtool"):
        print("skipped: no promtool")
        sys.exit(77)
    text = RULES.read_text()
    metrics = known()
    for where, expr in dashboard_expressions():
        check_names(where, expr, metrics)
    for line in text.splitlines():
        if "weir_" in line and not line.lstrip().startswith("#"):
            check_names(RULES.name, line, metrics)

    shutil.copy(RULES, ".")
    shutil.copy(SERIES, ".")
    promtool("test", "rules", SERIES.name)
    series = SERIES.read_text()
    for alert in re.findall(r"alert: (\w+)", text):
        if not re.search(rf"alertname: {alert}\n +exp_alerts:\n +- exp_labels", series):
            sys.exit(f"{SERIES.name}: {alert} is not made to fire")

    # Grafana's expressions, as rules of Prometheus.
    rules = [{"record": "panel", "expr": re.sub(r"\$__rate_interval", "5m", expr)}
             for _, expr in dashboard_expressions()]
    for i, rule in enumerate(rules):
        rule["record"] = f"panel:{i}"
    pathlib.Path("panels.yaml").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", "panels.yaml")


main()
