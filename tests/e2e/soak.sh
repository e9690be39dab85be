# SPDX-License-Identifier: BSD-3-Clause
# A cluster of three etcd, three controllers and eight gateways with 200 tenants, under faults: WEIR_SECONDS (40) of verified load, versions
# applied all the time, and a process killed or paused every 5 s (10 s in a run of minutes). soak.py says what is judged.
. "$WEIR_SOURCE/tests/lib.sh"
command -v etcd >/dev/null || skip "no etcd"
seconds=${WEIR_SECONDS-40}
every=5
[ "$seconds" -lt 100 ] || every=10
exec python3 -B "$WEIR_SOURCE/tests/e2e/soak.py" "$seconds" "$every" "${WEIR_SEED-1}"
