# SPDX-License-Identifier: BSD-3-Clause
# cost: time: tenants of equal weight get equal time of the device, 4 KiB against 256 KiB.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources: [{name: ssd, back: "model:ssd,channels=2,dies=2,latency=1ms+memory:512M", cost: time}]
exports:
  - {name: small, resource: ssd, size: 256 MiB}
  - {name: large, resource: ssd, offset: 256 MiB}
tenants: [{name: small, match: {export: small}}, {name: large, match: {export: large}}]
END
serve gate weir.yaml
weir load -t 2500ms --warm-up 1s -d 64 --json "small=nbd+unix:///small?socket=$here/s.sock" \
	"large=nbd+unix:///large?socket=$here/s.sock,size=256k" >load.json || fail "load"
python3 - <<'END' || fail "$(cat load.json)"
import json, sys
jobs = {j["job"]: j["iops"] for j in json.load(open("load.json"))}
# By the model: a page holds its die for 1 ms and for its bytes at 800 MB/s.
page = lambda bytes: 1e-3 + bytes / 800e6
small, large = jobs["small"] * page(4096), jobs["large"] * 16 * page(16384)
print("%.0f and %.0f iops: device time 1 : %.3f" % (jobs["small"], jobs["large"], large / small))
sys.exit(not 0.9 <= large / small <= 1.1)
END
serve_stop gate
