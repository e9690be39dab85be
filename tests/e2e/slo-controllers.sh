# SPDX-License-Identifier: BSD-3-Clause
# The controllers that follow SLOs without a plan, on a running gateway: a tenant beside a flood with eight times its weight misses its
# SLO; Cake moves weights until it holds; bySLO gives it priority. They take each other's place while both send.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

policy() # KEYS of the resource
{
	cat <<-END
	listen: "unix:$here/s.sock"
	resources:
	  - name: disk
	    depth: 8
	    $1
	    volumes:
	      - {name: db, back: "model:server,rate=1k,service=fixed,servers=8+memory:16M"}
	      - {name: flood, back: "model:server,rate=1k,service=fixed,servers=8+memory:16M"}
	tenants:
	  - {name: db, weight: 1, slo: "p90 < 30ms", match: {export: db}}
	  - {name: flood, weight: 8, match: {export: flood}}
	END
}

# within LOW HIGH: until that part of the requests of db in half a second was within its slo
within()
{
	python3 -B - "$1" "$2" <<-'END' || fail "db beside the flood: $1 to $2 of its requests within its slo"
	import sys, time
	from kept import ask

	def seen():
	    slo = ask("GET", "/v1/status?tenant=db")["tenants"][0]["slo"]
	    return slo["good"], slo["total"]

	low, high = map(float, sys.argv[1:])
	last = seen()
	until = time.monotonic() + 30
	while time.monotonic() < until:
	    time.sleep(0.5)
	    now = seen()
	    good, total = (b - a for a, b in zip(last, now))
	    print(f"{good} of {total}")
	    if total >= 20 and low <= good / total <= high:
	        sys.exit(0)
	    last = now
	sys.exit(1)
	END
}

policy "" >none.yaml
policy "controller: cake
    cake: {interval: 200ms, step: 0.5}" >cake.yaml
policy "controller: bySLO" >byslo.yaml
serve gate --api "unix:$here/api.sock" none.yaml
for load in "8 db" "64 flood"; do
	weir load -t 100s -d "${load% *}" "x=$(uri "${load#* }")" >"${load#* }.out" 2>&1 &
	serve_all="$serve_all $!"
done
for next in cake byslo; do
	within 0 0.1
	run 0 weir policy apply $next.yaml
	within 0.9 1
	run 0 weir policy apply none.yaml
done
