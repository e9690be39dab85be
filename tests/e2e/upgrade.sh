# SPDX-License-Identifier: BSD-3-Clause
# A gateway is replaced by another process (weir serve --replace) while clients are connected: no error, no wrong byte, no limit
# passed; and every failure on the way leaves the old process serving.
. "$WEIR_SOURCE/tests/lib.sh"

trap 'for f in *.pid; do kill -KILL "$(cat "$f")"; done 2>/dev/null' EXIT
truncate -s 64M disk.img
truncate -s 64M slow.img each1.img
cat >weir.yaml <<END
listen: ["unix:$PWD/s.sock"]
state: $PWD/state
resources:
  - {name: disk, back: "file:$PWD/disk.img", depth: 4}
  - {name: slow, back: "file:$PWD/slow.img"}
  - {name: each1, back: "file:$PWD/each1.img"}
tenants:
  - {name: each, each: {match: {export: "each*"}, max: 40 iops}}
  - {name: a, match: {export: disk}}
  - {name: s, match: {export: slow}, max: 40 iops}
END
python3 -B "$WEIR_SOURCE/tests/e2e/upgrade.py"
