# SPDX-License-Identifier: BSD-3-Clause
# A host with two resources on one array, beside a host with one: each resource has its part by the
# shares of its tenants. If bytes are shared, a resource with large requests has fewer inside in
# proportion.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

array

# two_hosts KEYS: start two hosts with these keys of their resources
two_hosts()
{
	lun="back: \"nbd+unix:///lun?socket=$PWD/array.sock\", controller: parda, threshold: 25ms"
	parda="parda: {array: lun, epsilon: 0.5, wmax: 256}"
	cat >both.yaml <<END
listen: "unix:$PWD/both.sock"
peers: {to: "file:$PWD/peers", host: both, period: 200ms}
resources: [{name: a, $lun, $parda$1}, {name: b, $lun, $parda$1}]
tenants: [{name: a, weight: 1, match: {export: a}}, {name: b, weight: 2, match: {export: b}}]
END
	cat >one.yaml <<END
listen: "unix:$PWD/one.sock"
peers: {to: "file:$PWD/peers", host: one, period: 200ms}
resources: [{name: c, $lun, $parda$1}]
tenants: [{name: c, weight: 3, match: {export: c}}]
END
	serve both --api "unix:$PWD/both.api" both.yaml
	serve one --api "unix:$PWD/one.api" one.yaml
}

# busy GATEWAY EXPORT SIZE: run a busy client
busy()
{
	weir load -d 256 -t 60s -s "$3" "nbd+unix:///$2?socket=$PWD/$1.sock" >/dev/null 2>&1 &
	loads="$loads $!"
}

stop_all()
{
	kill $loads
	serve_stop both
	serve_stop one
}

two_hosts ""
loads=
busy both a 4k
busy both b 4k
busy one c 4k
watch 40 "near(w[1] / w[0], 2, 0.15) and near(w[2] / w[0], 3, 0.15) and near(sum(w), 50, 0.2)" both:0 both:1 one ||
	fail "shares of 1:2:3"
watch 20 "[x['peers'] for x in p] == [1, 1, 2]" both:0 both:1 one || fail "the list of peers"
stop_all

two_hosts ", cost: bytes"
loads=
busy both a 4k
busy both b 64k
busy one c 16k
watch 40 "near(w[1] * 16 / w[0], 2, 0.15) and near(w[2] * 4 / w[0], 3, 0.15) and p[0]['latency_s'] > 0.02" both:0 both:1 one ||
	fail "shares of 1:2:3, in bytes"
stop_all
serve_stop array
