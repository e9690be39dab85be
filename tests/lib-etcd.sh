# SPDX-License-Identifier: BSD-3-Clause
# lib-etcd.sh: for tests that run etcd. After lib.sh and lib-serve.sh: `. "$WEIR_SOURCE/tests/lib-etcd.sh"`

command -v etcd >/dev/null || skip "no etcd"

# free_ports N: print N free ports of loopback
free_ports()
{
	python3 -c '
import socket, sys
all = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in all:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in all))' "$1"
}

# etcd_start N [OPTION...]: start N members on loopback, with data in ./etcd-1 and so on. Their URLs are in etcd_urls, with
# commas, and their process ids in etcd_pid_1 and so on. CLIENTS=https in the environment: with the certificate ./server for clients.
etcd_start()
{
	etcd_n=$1
	shift
	etcd_options=$*
	etcd_scheme=${CLIENTS-http}
	etcd_urls= etcd_peers=
	set -- $(free_ports $((2 * etcd_n)))
	i=1
	while [ "$i" -le "$etcd_n" ]; do
		eval "etcd_client_$i=$etcd_scheme://127.0.0.1:$1 etcd_peer_$i=http://127.0.0.1:$2"
		etcd_urls=$etcd_urls${etcd_urls:+,}$etcd_scheme://127.0.0.1:$1
		etcd_peers=$etcd_peers${etcd_peers:+,}m$i=http://127.0.0.1:$2
		shift 2
		i=$((i + 1))
	done
	i=1
	while [ "$i" -le "$etcd_n" ]; do
		etcd_run "$i"
		i=$((i + 1))
	done
	etcd_wait
}

# etcd_run I: start member I, or start it again
etcd_run()
{
	eval "client=\$etcd_client_$1 peer=\$etcd_peer_$1"
	# shellcheck disable=SC2086
	etcd --name "m$1" --data-dir "etcd-$1" --listen-client-urls "$client" --advertise-client-urls "$client" \
		--listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "$etcd_peers" \
		--heartbeat-interval 50 --election-timeout 500 --unsafe-no-fsync --log-level error \
		$etcd_options >"etcd-$1.log" 2>&1 </dev/null &
	eval "etcd_pid_$1=$!"
	serve_all="${serve_all-} $!"
	trap 'kill -KILL $serve_all 2>/dev/null; serve_cleanup' EXIT
}

etcd_wait() # until a leader answers
{
	tries=0
	until weir policy history --store "etcd:$etcd_urls?timeout=1s${etcd_extra-}" --json >etcd.wait 2>&1 ||
		grep -q "there is no policy" etcd.wait; do
		tries=$((tries + 1))
		[ "$tries" -lt 30 ] || fail "etcd does not answer: $(cat etcd.wait)"
		sleep 0.1
	done
}

etcd_kill() # I: end member I by SIGKILL
{
	eval "kill -KILL \$etcd_pid_$1; wait \$etcd_pid_$1 2>/dev/null || :"
}

# etcd_leader: print the number of the member that leads
etcd_leader()
{
	i=1
	while [ "$i" -le "$etcd_n" ]; do
		eval "client=\$etcd_client_$i"
		if ETCDCTL_API=3 etcdctl --endpoints "$client" endpoint status -w json 2>/dev/null | python3 -c '
import json, sys
s = json.load(sys.stdin)[0]["Status"]
sys.exit(s["leader"] != s["header"]["member_id"])' 2>/dev/null; then
			echo "$i"
			return
		fi
		i=$((i + 1))
	done
	fail "etcd has no leader"
}
