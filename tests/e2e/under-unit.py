# SPDX-License-Identifier: BSD-3-Clause
"""under-unit.py UNIT COMMAND...: run COMMAND with the list of system calls of the unit, and without capabilities, as
systemd does."""
import ctypes, os, re, subprocess, sys

ALLOW, EPERM = 0x7FFF0000, 0x00050001
PR_SET_SECUREBITS, NO_ROOT = 28, 0x3  # a user 0 without capabilities
# systemd.exec(5): always allowed
ALWAYS = {"@default", "execve", "exit", "exit_group", "getrlimit", "rt_sigreturn", "sigreturn"}


def expand(words):
    """Return the system calls of the sets, and those named themselves."""
    calls = {w for w in words if not w.startswith("@")}
    for s in set(words) - calls:
        out = subprocess.run(["systemd-analyze", "syscall-filter", s], check=True, capture_output=True, text=True).stdout
        calls |= expand([l.strip() for l in out.splitlines()[1:] if l.strip() and not l.strip().startswith("#")])
    return calls


def allowed(unit):
    calls = expand(ALWAYS)
    for no, words in re.findall(r"^SystemCallFilter=(~?)(.*)$", open(unit).read(), re.M):
        calls = calls - expand(words.split()) if no else calls | expand(words.split())
    return calls


def confine(calls):
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    lib.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
    lib.seccomp_load.argtypes = [ctypes.c_void_p]
    filter = lib.seccomp_init(EPERM)
    for call in calls:
        number = lib.seccomp_syscall_resolve_name(call.encode())
        if number >= 0:
            lib.seccomp_rule_add(filter, ALLOW, number, 0)
    assert lib.seccomp_load(filter) == 0


calls = allowed(sys.argv[1])
if os.getuid() == 0:
    ctypes.CDLL(None).prctl(PR_SET_SECUREBITS, NO_ROOT, 0, 0, 0)
confine(calls)
os.execvp(sys.argv[2], sys.argv[2:])
