# SPDX-License-Identifier: BSD-3-Clause
# The end of weir serve: busy clients see the end of the connection and no wrong answer, and flushed
# data are kept.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

# libnbd's module is Debian's, so its Python must be, too, whatever is first on the path.
for python in python3 /usr/bin/python3 none; do
	"$python" -c 'import nbd' 2>/dev/null && break
done
[ "$python" != none ] || skip "no python3-libnbd"
here=$PWD

await() # FILE WHY: wait until it exists and, if it is a pid file, has been written; else fail with WHY
{
	tries=0
	until [ -e "$1" ] && { [ "${1%.pid}" = "$1" ] || [ -s "$1" ]; }; do
		tries=$((tries + 1))
		[ "$tries" -lt 500 ] || fail "$2"
		sleep 0.02
	done
}

# A client that writes numbered blocks and flushes every eighth, and reports which were flushed. It
# runs until the gateway ends; then the connection must end without any other error.
cat >client.py <<'END'
import nbd, os, struct, sys
h = nbd.NBD()
h.connect_uri("nbd+unix:///?socket=" + os.getcwd() + "/s.sock")
done = 0
try:
    for i in range(1, 1000000):
        h.pwrite(struct.pack("<Q", i) * 512, (i % 2048) * 4096)
        if i % 8 == 0:
            h.flush()
            done = i
            if i == 64:
                open("working", "w").close()
except nbd.Error as e:
    # Only the loss of the server may be seen (EINVAL: libnbd on a closed connection).
    if e.errno not in ("ENOTCONN", "ECONNRESET", "EPIPE", "ESHUTDOWN", "EINVAL"):
        print("wrong error", e, file=sys.stderr)
        sys.exit(1)
open("flushed", "w").write(str(done))
END
cat >look.py <<'END'
import struct, sys
done = int(open("flushed").read())
disk = open("disk.img", "rb").read()
if done < 64:
    sys.exit("only %d were written" % done)
for i in range(max(1, done - 2047), done + 1):
    at = (i % 2048) * 4096
    got = set(struct.unpack("<512Q", disk[at:at + 4096]))
    # The block may hold a later, unflushed write, complete; never an older one.
    if len(got) != 1 or next(iter(got)) % 2048 != i % 2048 or next(iter(got)) < i:
        sys.exit("block %d: %s after %d" % (i, sorted(got)[:4], done))
END

for signal in TERM INT KILL; do
	rm -f disk.img working flushed
	truncate -s 8M disk.img
	serve gw --listen "unix:$here/s.sock" "file:$here/disk.img"
	"$python" client.py >client.out 2>&1 &
	client=$!
	await working "the client does not get to work: $(cat client.out)"
	pid=$(cat gw.pid)
	kill -"$signal" "$pid"
	got=0
	wait "$pid" || got=$?
	case $signal in
	KILL) [ "$got" -eq 137 ] || fail "SIGKILL: status $got" ;;
	*) [ "$got" -eq 0 ] || { cat gw.log >&2; fail "SIG$signal: status $got"; } ;;
	esac
	wait "$client" || { cat client.out >&2; fail "the client saw another error than the end"; }
	"$python" look.py || fail "SIG$signal lost flushed data"
done

# A request that a max holds for longer than 5 s is abandoned; a second signal does not wait for
# that.
cat >slow.yaml <<END
listen: "unix:$here/t.sock"
resources: [{name: disk, back: "memory:1M"}]
tenants: [{name: slow, max: 0.1 iops, match: {export: "*"}}]
END
serve slow slow.yaml
cat >held.py <<'END'
import nbd, os
h = nbd.NBD()
h.connect_uri("nbd+unix:///disk?socket=" + os.getcwd() + "/t.sock")
bufs = [nbd.Buffer(4096) for i in range(8)]
for b in bufs:
    h.aio_pread(b, 0)
open("held", "w").close()
try:
    while h.aio_in_flight() > 0:
        h.poll(-1)
except nbd.Error:
    pass
END
"$python" held.py &
client=$!
await held "the client does not get to work"
sleep 0.2
pid=$(cat slow.pid)
kill -TERM "$pid"
sleep 0.5
kill -0 "$pid" 2>/dev/null || fail "did not wait for requests inside"
start=$(date +%s)
serve_stop slow
[ $(($(date +%s) - start)) -lt 3 ] || fail "the second signal waits too"
has slow.log "clients-cut-off"
wait "$client" || fail "the held client failed"

# At its end the gateway flushes unflushed data: the upstream receives the flush.
if command -v nbdkit >/dev/null; then
	nbdkit -f -P up.pid -U "$here/u.sock" --filter=log memory 1M logfile=up.log &
	upstream=$!
	serve_all="$serve_all $upstream"
	await up.pid "nbdkit is not ready"
	serve up --listen "unix:$here/v.sock" "nbd+unix:///?socket=$here/u.sock"
	cat >write.py <<-'END'
		import nbd, os
		h = nbd.NBD()
		h.connect_uri("nbd+unix:///?socket=" + os.getcwd() + "/v.sock")
		h.pwrite(b"x" * 4096, 0)
		h.shutdown()
	END
	"$python" write.py || fail "cannot write"
	# The write is flushed at the end, and not before: the only earlier FLUSH is that of the
	# start.
	sed -n '/Write id/,$p' up.log >since.log
	hasnt since.log "Flush"
	serve_stop up
	sed -n '/Write id/,$p' up.log >since.log
	has since.log "Flush"

	# While the upstream is lost the end does not wait for it: waiting clients get an error, and
	# possible losses are logged.
	cat >away.yaml <<-END
		listen: "unix:$here/w.sock"
		resources: [{name: far, back: "nbd+unix:///?socket=$here/u.sock"}]
		tenants: [{name: slow, max: 1 iops, match: {export: "far"}}]
	END
	serve away away.yaml
	cat >wait.py <<-'END'
		import nbd, os, signal, sys
		h = nbd.NBD()
		h.connect_uri("nbd+unix:///far?socket=" + os.getcwd() + "/w.sock")
		h.pwrite(b"x" * 8192, 0)
		os.kill(int(sys.argv[1]), signal.SIGKILL)
		seen = []
		def done(error):
		    seen.append(error.value)
		    return 1
		bufs = [nbd.Buffer(4096) for i in range(16)]  # some inside, some held by the max
		for b in bufs:
		    h.aio_pread(b, 0, completion=done)
		open("waiting", "w").close()
		try:
		    while len(seen) < 16:
		        h.poll(-1)
		except nbd.Error as e:
		    sys.exit("cut off: %s" % e)
		if set(seen) != {108}:  # ESHUTDOWN
		    sys.exit("wrong errors: %s" % seen)
	END
	"$python" wait.py "$upstream" 2>wait.err &
	client=$!
	await waiting "the client does not get to work"
	sleep 0.2
	start=$(date +%s%N)
	serve_stop away
	took=$((($(date +%s%N) - start) / 1000000))
	[ "$took" -lt 2000 ] || { cat away.log >&2; fail "the end took $took ms"; }
	wait "$client" || { cat wait.err away.log >&2; fail "the waiting client got no error"; }
	has away.log "flush-failed resource=far why=\"its upstream is away\" unflushed-bytes=8192"
fi
