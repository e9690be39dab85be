# SPDX-License-Identifier: BSD-3-Clause
# Weights act within a resource: DUE counts only the tenants with clients at the same resource, and resources on one disk
# or upstream are noticed.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
export WEIR_SOCKET="$here/api.sock"
truncate -s 16M a.raw b.raw c.raw
tenants='tenants:
  - {name: a, weight: 20, match: {export: a}}
  - {name: b, weight: 1, match: {export: b}}
  - {name: group, weight: 79, children: [{name: idle, match: {export: c}}]}'
cat >apart.yaml <<END
listen: "unix:$here/s.sock"
resources:
  - {name: a, back: "file:a.raw"}
  - {name: b, back: "file:b.raw?direct=no"}
  - {name: c, back: "memory:1M"}
$tenants
END
cat >one.yaml <<END
listen: "unix:$here/s.sock"
resources:
  - name: disk
    volumes:
      - {name: a, back: "file:a.raw"}
      - {name: b, back: "file:b.raw"}
      - {name: c, back: "file:c.raw"}
$tenants
END

# ---- hints

hint="apart.yaml:4:21: 'a' and 'b' are on one "
for command in "policy check" "serve --check"; do
	run 0 weir $command apart.yaml
	has stderr "$hint"
	has stderr "weights do not act between two resources: make them one resource with volumes (hint)"
	[ "$(grep -c hint stderr)" -eq 1 ] || fail "other hints: $(cat stderr)"
	run 0 weir $command one.yaml
	hasnt stderr "hint"
done
for upstream in nbd://127.0.0.1:1/y nbd://127.0.0.1:2/y; do
	sed "s|file:a.raw|nbd://127.0.0.1:1/x|; s|file:b.raw?direct=no|$upstream|" apart.yaml >up.yaml
	run 0 weir policy check up.yaml
	has stderr "up.yaml:4:21: 'a' and 'b' are on one server 127.0.0.1, "
done
sed 's|file:a.raw|nbd://127.0.0.1:1/x|; s|file:b.raw?direct=no|nbd://127.0.0.2:1/y|' apart.yaml >up.yaml
run 0 weir policy check up.yaml
hasnt stderr "hint"
# Folders, and volumes that are not the first ones of their resource.
mkdir -p images more
cat >folders.yaml <<END
listen: "unix:$here/s.sock"
resources:
  - {name: a, volumes: [{dir: "$here/images", match: "*.raw"}]}
  - {name: b, volumes: [{name: m, back: "memory:1M"}, {name: b, back: "file:b.raw"}]}
  - {name: c, volumes: [{dir: "$here/more", match: "*.raw"}, {dir: "$here/none", match: "*"}]}
  - {name: d, volumes: [{dir: /dev, match: "no-such-device-*"}]}
$tenants
END
run 0 weir policy check folders.yaml
has stderr "folders.yaml:4:55: 'a' and 'b' are on one "
has stderr "folders.yaml:5:"
has stderr "'a' and 'c' are on one "
[ "$(grep -c hint stderr)" -eq 2 ] || fail "other hints: $(cat stderr)"

# ---- DUE, in the columns of weir status

due() # TENANT: print its DUE
{
	awk -v name="$1" '/^TENANT/ {for (i = 1; i <= NF; i++) if ($i == "DUE") column = i}
		column && $1 == name {print $column}' stdout
}

look() # the DUE of a, of b and of group
{
	weir load -t 30s -d 4 "a=nbd+unix:///a?socket=$here/s.sock" "b=nbd+unix:///b?socket=$here/s.sock" >load.out 2>&1 &
	load=$!
	tries=0
	run 0 weir status
	until [ "$(due a) $(due b) $(due group)" = "$1 $2 $3" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 50 ] || fail "DUE is $(due a) $(due b) $(due group), not $1 $2 $3: $(cat stdout)"
		sleep 0.1
		run 0 weir status
	done
	kill "$load"
	wait "$load"
}

serve gate --api "unix:$here/api.sock" apart.yaml
has gate.log "$hint"
look 100% 100% -
serve_stop gate
serve gate --api "unix:$here/api.sock" one.yaml
look 95% 4.8% -
weir load -t 60s -d 1 "nbd+unix:///c?socket=$here/s.sock" >io.out 2>&1 &
io=$!
look 20% 1.0% 79%
kill "$io"
wait "$io"
serve_stop gate
