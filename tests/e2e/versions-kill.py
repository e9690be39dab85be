# SPDX-License-Identifier: BSD-3-Clause
"""versions-kill.py STORE SECONDS: apply versions by four operators at once, and check what they were told.

An operator is told that version N is stored, or that version N was stored meanwhile, or that it is not known. Checked:
- no version is promised to two operators, and each that was promised is in the history with its message;
- numbers have no gap, and each version's message was sent by an operator, at most once;
- if a call ended before another began, the later call was told a higher number (stored), or at least the same (meanwhile)."""
import json
import re
import subprocess
import sys
import threading
import time

STORE, SECONDS = sys.argv[1], float(sys.argv[2])
calls, lock = [], threading.Lock()


def weir(*words):
    done = subprocess.run(["weir", "policy", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def operate(name):
    end, n = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        n += 1
        message = f"{name}-{n}"
        with open(f"{message}.yaml", "w", encoding="utf-8") as file:
            file.write(f"- {{name: db, weight: {n}}}\n- {{name: {name}}}\n")
        begin = time.monotonic()
        status, text = weir("apply", "--store", STORE, "-m", message, f"{message}.yaml")
        call = {"begin": begin, "end": time.monotonic(), "message": message, "stored": None, "seen": None, "text": text}
        stored, seen = re.search(r"version (\d+) is stored", text), re.search(r"version (\d+) was stored meanwhile", text)
        if status == 0 and stored:
            call["stored"] = int(stored[1])
        elif seen:
            call["seen"] = int(seen[1])
        with lock:
            calls.append(call)


def history():
    for _ in range(50):
        status, text = weir("history", "--json", "--store", STORE)
        if status == 0:
            return {v["number"]: v["message"] for v in json.loads(text)}
        time.sleep(0.2)
    sys.exit("the history cannot be read")


threads = [threading.Thread(target=operate, args=(name,)) for name in ("anna", "bob", "cleo", "dan")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
time.sleep(3)  # a member that was just started has caught up
kept, faults = history(), []
sent = {call["message"] for call in calls}
if sorted(kept) != list(range(1, len(kept) + 1)):
    faults.append(f"the numbers have gaps: {sorted(kept)}")
if len(set(kept.values())) != len(kept) or not set(kept.values()) <= sent:
    faults.append("a version was stored twice, or by no operator")
for call in calls:
    if call["stored"] and kept.get(call["stored"]) != call["message"]:
        faults.append(f"version {call['stored']} was promised to {call['message']}, and is {kept.get(call['stored'])}")
    if call["seen"] and call["message"] in kept.values():
        faults.append(f"{call['message']} was refused, and is stored")
told = [call for call in calls if call["stored"] or call["seen"]]
for a in told:
    for b in told:
        if a["end"] < b["begin"] and (b["stored"] or b["seen"]) < (a["stored"] or a["seen"]) + bool(b["stored"]):
            faults.append(f"{b['message']} was told {b['stored'] or b['seen']} after {a['message']} was told "
                          f"{a['stored'] or a['seen']}")
stored = [call for call in calls if call["stored"]]
refused = [call for call in calls if call["seen"]]
print(f"{len(calls)} calls: {len(stored)} stored, {len(refused)} refused, {len(calls) - len(told)} without a result; "
      f"{len(kept)} versions; longest call {max(c['end'] - c['begin'] for c in calls):.1f} s")
for fault in faults[:10]:
    print(fault, file=sys.stderr)
for call in calls:
    if not call["stored"] and not call["seen"]:
        print("  " + call["text"].strip().splitlines()[-1][:200])
sys.exit(1 if faults or len(stored) < 10 else 0)
