# SPDX-License-Identifier: BSD-3-Clause
# Two hosts before an array, and a client that uses the array directly: the hosts find it, report
# it, and keep their part; when it stops they report that, too. Settings that prevent shares or the
# threshold are reported once, in words.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

array server,rate=6000
threshold=8ms
set -- $(free_ports 2)
host one 1 lun "to: [$(peers_of "$2")], listen: \"udp:127.0.0.1:$1\""
host two 1 lun "to: [$(peers_of "$1")], listen: \"udp:127.0.0.1:$2\""
load_start one 60
load_start two 60
watch 20 'held 1 w[0] > 15 and near(w[1] / w[0], 1, 0.2) and near(p[0]["latency_s"], 0.008, 0.25)' one two ||
	fail "the hosts do not settle"
hasnt one.log parda-stranger

# 200 more inside: latency is 33 ms whatever the hosts do. A third of the total is half of two
# hosts' fair part.
weir load --json -d 200 -t 60s "nbd+unix:///lun?socket=$PWD/array.sock" >stranger.out 2>&1 &
stranger=$!
watch 10 'p[0]["stranger"] and p[1]["stranger"] and w[0] + w[1] > 0.5 * 200' one two || fail "no share is kept beside a stranger: $(cat stranger.out)"
watch 3 'all w[0] + w[1] > 0.45 * 200 and near(w[0] / w[1], 1, 0.2)' one two || fail "the share kept beside a stranger"
watch 10 '80 < p[0]["stranger"] < 400 and p[0]["floor"] > 20' one || fail "the stranger's size"
has one.log parda-stranger
run 0 weir status --socket one.api
has stdout "a stranger has about"
python3 - one.api >metrics <<'END2'
import http.client, socket, sys
class Api(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host)
api = Api(sys.argv[1])
api.request("GET", "/metrics", headers={"Host": "localhost"})
print(api.getresponse().read().decode())
END2
grep -q '^weir_parda_stranger_requests{resource="lun"} [1-9]' metrics || fail "the metric: $(grep parda metrics)"
kill "$stranger"
wait "$stranger"
watch 20 'held 1 not p[0]["stranger"] and not p[1]["stranger"] and near(p[0]["latency_s"], 0.008, 0.25)' one two ||
	fail "the stranger's end"
has one.log parda-stranger-gone
[ "$(grep -c 'parda-stranger ' one.log)" -le 2 ] || fail "the stranger is reported more than once"
