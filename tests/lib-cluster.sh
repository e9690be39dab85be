# SPDX-License-Identifier: BSD-3-Clause
# lib-cluster.sh: for tests of servers under one controller. After lib-serve.sh: `.
# "$WEIR_SOURCE/tests/lib-cluster.sh"`
# Tenant bI has a min of 150 and a max of 300 requests a second, on servers s1 … sI; a server has a
# configured capacity of 250. Requests are so few, and take 43 ms each, so that a busy machine can
# keep up.

cluster_period=1s

# cluster_key NAME: make a key in ./NAME
cluster_key()
{
	(umask 077 && head -c 32 /dev/urandom >"$1")
}

# cluster_files N [CONTROLLERS]: write tenants.yaml, control.yaml, and s1.yaml … sN.yaml. A server
# can do half more than its configured capacity: a busy machine takes some of it.
cluster_files()
{
	servers=$(seq -s ', ' -f 's%g' "$1")
	head="cluster: {name: test, key: key, controller: [${2:-\"unix:$PWD/c.sock\"}], servers: [$servers], period: $cluster_period"
	{
		echo "tenants:"
		for b in $(seq "$1"); do
			echo "  - {name: b$b, min: 150 iops, max: 300 iops, servers: [$(seq -s ', ' -f 's%g' "$b")], match: {export: b$b}}"
		done
	} >tenants.yaml
	printf '%s, listen: "unix:%s"}\napi: "unix:%s"\ntenants: tenants.yaml\n' "$head" "$PWD/c.sock" "$PWD/c.api" >control.yaml
	for s in $(seq "$1"); do
		{
			echo "$head}"
			echo "listen: \"unix:$PWD/s$s.sock\""
			echo "resources: [{name: s$s, back: \"model:server,rate=375,service=fixed,servers=16+memory:40M\","
			echo "  depth: 16, capacity: 250 iops, controller: pshift}]"
			echo "exports:"
			for b in $(seq "$s" "$1"); do
				echo "  - {name: b$b, resource: s$s, offset: $((b - 1))0 MiB, size: 10 MiB}"
			done
			echo "tenants: tenants.yaml"
		} >"s$s.yaml"
	done
}

# control NAME ARGUMENT...: start `weir control ARGUMENT...` and wait until servers may connect, as
# serve does
control()
{
	name=$1
	shift
	rm -f "$name.pid"
	weir control --pidfile "$name.pid" "$@" >"$name.out" 2>"$name.log" </dev/null &
	serve_child=$!
	serve_all="${serve_all-} $serve_child"
	trap 'kill -KILL $serve_all 2>/dev/null; serve_cleanup' EXIT
	serve_ready "$name" "weir control $*"
}

# cluster_up N: start the servers, each with an API in ./sI.api
cluster_up()
{
	for s in $(seq "$1"); do
		serve "s$s" --api "unix:$PWD/s$s.api" "s$s.yaml"
	done
}

# cluster_state WHERE EXPRESSION: evaluate it in Python on `d`, the status at ./WHERE.api
cluster_state()
{
	curl -s --unix-socket "$1.api" http://localhost/v1/status | python3 -c "
import json
import sys
d = json.load(sys.stdin)
print($2)"
}

# await WHERE EXPRESSION WANTED: wait until it has this value, for 10 s at most
await()
{
	tries=0
	until [ "$(cluster_state "$1" "$2")" = "$3" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 200 ] || fail "$1: $2 is $(cluster_state "$1" "$2"), not $3"
		sleep 0.05
	done
}

# cluster_start N [CONTROLLERS]: start everything, from the key on, and wait until the controller
# grants
cluster_start()
{
	cluster_key key
	cluster_files "$@"
	control c control.yaml
	cluster_up "$1"
	await c 'd["state"]' granting
}

# cluster_watch N SECONDS: record the servers' counts for each period, in the background; the result
# is in ./ledgers
cluster_watch()
{
	python3 -B "$WEIR_SOURCE/tests/e2e/ledgers.py" "$2" 300 $(seq -f "$PWD/s%g.api" "$1") >ledgers 2>&1 &
	watch=$!
}

# cluster_load N SECONDS: keep 16 reads of every tenant in flight at each of its servers; write
# ./series.csv
cluster_load()
{
	jobs=
	for s in $(seq "$1"); do
		for b in $(seq "$s" "$1"); do
			jobs="$jobs b$b-s$s=nbd+unix:///b$b?socket=$PWD/s$s.sock"
		done
	done
	weir load --depth 16 --duration "$2s" --series series.csv --json $jobs >load.json
}

# cluster_kept LEAST: check in ./series.csv that every tenant had its min, LEAST of it in every
# period, and never exceeded its max
cluster_kept()
{
	PYTHONPATH="$WEIR_SOURCE/tests/e2e" python3 -B -c "import periods; periods.kept('series.csv', $1)"
}
