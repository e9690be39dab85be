# SPDX-License-Identifier: BSD-3-Clause
# The units of the services are valid, and systemd rates what they may do at 2.5 of 10 or below.
. "$WEIR_SOURCE/tests/lib.sh"

command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
for unit in weir.service weir-control.service; do
	cp "$WEIR_BUILD/packaging/$unit" .
	systemd-analyze security --offline=yes --threshold=25 "./$unit" >rating 2>&1 ||
		fail "$unit: $(tail -n 1 rating)"
	grep -q '^User=weir$' "$unit" || fail "$unit: not run as the user weir"
done
# The shaper has two capabilities, of the network and of BPF, and the user weir.
if [ -e "$WEIR_BUILD/packaging/weir-shape.service" ]; then
	cp "$WEIR_BUILD/packaging/weir-shape.service" .
	systemd-analyze security --offline=yes --threshold=35 ./weir-shape.service >rating 2>&1 ||
		fail "weir-shape.service: $(tail -n 1 rating)"
	grep -q '^CapabilityBoundingSet=CAP_NET_ADMIN CAP_BPF$' weir-shape.service || fail "weir-shape.service: other capabilities"
fi
# The rating can fail: without the user and the list of system calls, the units are above it.
grep -v '^User=\|^SystemCallFilter=\|^CapabilityBoundingSet=' weir.service >bare.service
systemd-analyze security --offline=yes --threshold=25 ./bare.service >rating 2>&1 &&
	fail "a service of root: $(tail -n 1 rating)"
exit 0
