# SPDX-License-Identifier: BSD-3-Clause
# cost: time: tenants of equal weight get equal time of the device, 4 KiB against 256 KiB, both at
# QD64: reads of a slow SSD, and writes to one as wide as the default. Both are so slow that the 64
# requests of the small client last for at least 32 ms. If a busy machine delays a client for
# longer, it has no requests left, and the other one rightly gets the device.
# tests/serve/resource/time.c tests the default SSD, in virtual time.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD

# Arguments: the back end, the share of reads, and the model's time for a page on its die, in
# seconds, without the transfer at 800 MB/s.
equal() {
	cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources: [{name: ssd, back: "$1+memory:512M", cost: time}]
exports:
  - {name: small, resource: ssd, size: 256 MiB}
  - {name: large, resource: ssd, offset: 256 MiB}
tenants: [{name: small, match: {export: small}}, {name: large, match: {export: large}}]
END
	serve gate weir.yaml
	weir load -t 2s --warm-up 800ms -d 64 --reads "$2" --json \
		"small=nbd+unix:///small?socket=$here/s.sock" \
		"large=nbd+unix:///large?socket=$here/s.sock,size=256k" >load.json || fail "load"
	python3 - "$3" <<'END' || fail "$1: $(cat load.json)"
import json, sys
jobs = {j["job"]: j["iops"] for j in json.load(open("load.json"))}
page = lambda bytes: float(sys.argv[1]) + bytes / 800e6
small, large = jobs["small"] * page(4096), jobs["large"] * 16 * page(16384)
print("%.0f and %.0f iops: device time 1 : %.3f" % (jobs["small"], jobs["large"], large / small))
sys.exit(not 0.9 <= large / small <= 1.1)
END
	serve_stop gate
}

equal model:ssd,channels=2,dies=2,latency=1ms 100% 1e-3
equal model:ssd,program=12ms 0% 12e-3
