# SPDX-License-Identifier: BSD-3-Clause
# A server of a cluster is a resource, and comes and goes with a policy while the controller leads: the other one keeps its lease
# and its clients, and the one that comes back gets a lease again.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

export WEIR_SOCKET="$PWD/s1.api"
cluster_period=500ms
cluster_key key
cluster_files 2
# both servers in one gateway; the names of the exports say which
server()
{
	echo "  - {name: $1, back: \"memory:40M\", depth: 16, capacity: 250 iops, controller: pshift}"
}
{
	sed '/^resources:/,$d' s1.yaml
	echo "resources:"
	server s1
} >one.yaml
cp one.yaml two.yaml
server s2 >>two.yaml
for file in one two; do
	echo 'exports: [{name: b1, resource: s1}]' >>"$file.yaml"
	echo 'tenants: tenants.yaml' >>"$file.yaml"
done
sed -i 's/resource: s1}\]/resource: s1}, {name: b2, resource: s2}]/' two.yaml

control c control.yaml
serve s1 --api "unix:$PWD/s1.api" two.yaml
state='" ".join(r["name"] + " " + r["pshift"]["state"] for r in d["resources"])'
await s1 "$state" "s1 leased s2 leased"
weir load -t 60s -d 4 --reads 50% --verify "b1=nbd+unix:///b1?socket=$PWD/s1.sock" >load.out 2>&1 &
load=$!
for i in 1 2 3 4 5; do
	weir load -t 20s -d 4 "b2=nbd+unix:///b2?socket=$PWD/s1.sock" >/dev/null 2>&1 &
	run 0 weir policy apply one.yaml
	await s1 "$state" "s1 leased"
	run 0 weir policy apply two.yaml
	run 0 weir policy apply one.yaml
	run 0 weir policy apply two.yaml
done
await s1 "$state" "s1 leased s2 leased"
kill -INT "$load"
wait "$load" || fail "weir load of the server that stays: $(cat load.out)"
has load.out " 0 wrong"
serve_stop s1
serve_stop c
