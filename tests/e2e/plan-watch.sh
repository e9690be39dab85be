# SPDX-License-Identifier: BSD-3-Clause
# weir plan --watch: a tenant sends more than its trace, and its buckets alone change; without --apply nothing does; a plan that
# misses an slo is not applied; the recordings are removed.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
export WEIR_SOCKET="$here/api.sock"
mkdir recordings
python3 - <<'END'
for name, gap in ("db.trace", 50), ("web.trace", 20):
    with open(name, "w") as f:
        f.write("# weir-trace 1\n")
        for i in range(400):
            f.write(f"{i * gap * 10**6} R {i * 65536} 4096 0\n")
END
cat >ssd1.profile <<END
profile: 1
depth: 4
sizes: [4 KiB, 1 MiB]
read: {inside: {max: 1ms}, work: [{work: [1ms, 1ms]}]}
write: {inside: {max: 1ms}, work: [{work: [1ms, 1ms]}]}
END
policy() # SLO of db
{
	cat <<END
listen: "unix:$here/s.sock"
recordings: "$here/recordings"
resources:
  - {name: ssd1, back: "memory:64M", depth: 4, profile: ssd1.profile}
exports: [{name: db, resource: ssd1}]
tenants:
  - {name: db, slo: "p90 < $1", trace: db.trace, match: {export: db}}
  - {name: web, slo: "p90 < 1s", trace: web.trace, match: {export: "*"}}
END
}
policy 500ms >weir.yaml
# watch TEXT ARGUMENT...: until its output has TEXT, while db sends 200 requests a second
watch()
{
	text=$1
	shift
	weir plan --watch --every 1s "$@" >watch.out 2>&1 &
	watcher=$!
	serve_all="$serve_all $watcher"
	tries=0
	until grep -qF -e "$text" watch.out; do
		tries=$((tries + 1))
		[ $tries -lt 400 ] || fail "the watch does not say: $text: $(cat watch.out)"
		kill -0 $watcher 2>/dev/null || fail "the watch ended: $(cat watch.out)"
		sleep 0.05
	done
	kill -INT $watcher
	wait $watcher || fail "the watch failed: $(cat watch.out)"
}
buckets() # the buckets in force
{
	curl -s --unix-socket api.sock http://weir/v1/plan | python3 -c '
import json, sys
p = json.load(sys.stdin)
print(p["number"], *(t["stages"][0]["buckets"] for t in p["plan"]["tenants"]), sep="\n")'
}

command -v curl >/dev/null || skip "no curl"
serve gate --api "unix:$here/api.sock" weir.yaml
run 0 weir plan --apply weir.yaml
buckets >before
weir load --rate 200 --size 4k --duration 60s "nbd+unix:///db?socket=$here/s.sock" >/dev/null 2>&1 &
load=$!
serve_all="$serve_all $load"

watch "db exceeds its buckets" weir.yaml
has watch.out "1 of 2 tenants change:"
hasnt watch.out "in force"
buckets >now
cmp before now || fail "the plan changed without --apply"

watch "no change" --apply weir.yaml
has watch.out "1 of 2 tenants change:"
has watch.out "the plan is in force"
buckets >after
[ "$(sed -n 3p after)" = "$(sed -n 3p before)" ] || fail "the buckets of web changed: $(cat before after)"
[ "$(sed -n 2p after)" != "$(sed -n 2p before)" ] || fail "the buckets of db did not change: $(cat before after)"
[ "$(sed -n 1p after)" -gt 1 ] || fail "no new plan: $(cat after)"
[ -z "$(ls recordings)" ] || fail "recordings are left: $(ls recordings)"

# an slo that its record misses: the plan in force stays
policy 6ms >weir.yaml
run 0 weir policy apply weir.yaml
watch "An slo is missed: the plan in force stays." --apply weir.yaml
hasnt watch.out "is in force"

kill $load
wait $load || :
run 2 weir plan --every 5s weir.yaml
run 2 weir plan --watch --every 1ms weir.yaml
run 2 weir plan --watch --json weir.yaml
serve_stop gate
run 1 weir plan --watch weir.yaml
