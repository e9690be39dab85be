# SPDX-License-Identifier: BSD-3-Clause
# weir top on a real terminal (tmux's): keys, resizing, a gateway that stops and restarts, and the
# terminal restored on every way out.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

command -v tmux >/dev/null || skip "no tmux"
here=$PWD
export WEIR_SOCKET="$here/api.sock"
mux="tmux -S $here/mux -f /dev/null"
serve_cleanup()
{
	$mux kill-server 2>/dev/null
	true
}

# start: open a window whose shell saves the terminal's state before and after `weir top`.
start()
{
	rm -f before after status
	$mux new-session -d -x 110 -y 16 -s t "sh -c '
		stty -g >before
		trap : INT
		weir top --interval 100ms; echo \$? >status.part; mv status.part status
		stty -g >after.part; mv after.part after
		echo back in the shell; read -r line'"
}
# sees TEXT: the window shows it within 5 s.
sees()
{
	looks=0
	until $mux capture-pane -p -t t >window && grep -qF -e "$1" window; do
		looks=$((looks + 1))
		[ $looks -lt 100 ] || {
			cat window >&2
			fail "top does not show: $1"
		}
		sleep 0.05
	done
}
# ended STATUS: top has exited with that status; the terminal is as before, and shows the shell.
ended()
{
	tries=0
	until [ -s after ]; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || fail "top does not end"
		sleep 0.05
	done
	[ "$(cat status)" = "$1" ] || fail "top: exit status $(cat status)"
	cmp -s before after || fail "the terminal is not as it was"
	sees 'back in the shell'
	hasnt window TENANT
	[ "$($mux display-message -p -t t '#{cursor_flag}#{alternate_on}')" = 10 ] || fail "no cursor, or the other screen"
	$mux kill-session -t t
}
top_pid()
{
	pgrep -s "$($mux display-message -p -t t '#{pane_pid}')" -x weir || pgrep -P "$($mux display-message -p -t t '#{pane_pid}')" -x weir
}

cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources: [{name: disk, back: "memory:64M", depth: 8}]
tenants:
  - name: prod
    max: 1k iops
    children:
      - {name: db, match: {export: disk}}
  - {name: rest, match: {export: "*"}}
END
serve gate --api "unix:$here/api.sock" weir.yaml
weir load -t 60s "nbd+unix:///disk?socket=$here/s.sock,depth=4" >/dev/null 2>&1 &
load=$!
serve_all="$serve_all $load"

$mux new-session -d -s keep 'sleep 1000' # else tmux exits with each window, possibly late

# ---- keys and sizes
start
sees 'max of prod 100%'
has window 'q quit'
has window 'RESOURCE'
has window '1 client;'
$mux send-keys -t t s
sees 'sort: iops'
$mux send-keys -t t r
sees 'CLIENT'
hasnt window 'WAITS FOR'
$mux send-keys -t t r
sees 'WAITS FOR'
$mux send-keys -t t x # an unknown key

# ---- help, filter, scrolling
for key in h '?'; do
	$mux send-keys -t t "$key"
	sees 'only tenants whose path begins with the typed text'
	hasnt window RESOURCE
	$mux send-keys -t t "$key"
	sees 'WAITS FOR'
done
$mux send-keys -t t / pX BSpace rod/
sees 'filter: prod/_'
$mux send-keys -t t Enter
sees '/ filter: prod/'
sees prod/db
tries=0
while grep -q '^rest ' window; do
	sees TENANT
	tries=$((tries + 1))
	[ $tries -lt 100 ] || fail "the filter shows others: $(cat window)"
	sleep 0.05
done
$mux send-keys -t t / Escape
sees 'rest '
hasnt window '/ filter'
$mux send-keys -t t / prod/ Enter
sees '/ filter: prod/'
$mux send-keys -t t Escape # without a new filter first
sees 'rest '
hasnt window '/ filter'
$mux send-keys -t t h
sees 'only tenants whose path begins with the typed text'
$mux send-keys -t t Escape
sees 'WAITS FOR'
$mux send-keys -t t s s s s # in the order of the policy
sees 'sort: policy'
$mux send-keys -t t Down
sees 'row 2 of 3'
! grep -q '^prod ' window || fail "it did not scroll: $(cat window)"
$mux send-keys -t t Home
sees 'prod '
printf '\033[B\033OB' >keys # typed at once, as by a key held down
$mux load-buffer keys
$mux paste-buffer -r -t t
sees 'row 3 of 3'
$mux send-keys -t t Home
sees 'prod '
$mux send-keys -t t End
sees 'row 3 of 3'
$mux send-keys -t t Down PgDn # at the last row
sees 'row 3 of 3'
$mux send-keys -t t k
sees 'row 2 of 3'
$mux send-keys -t t Home
sees 'prod '
hasnt window 'row '
$mux resize-window -t t -x 40 -y 5
tries=0
while [ $tries -lt 5 ]; do # for a few intervals: nothing scrolls, nothing wraps
	sees 'RESOURCE'
	head -n 1 window | grep -q '^q quit' || fail "the first line is gone: $(cat window)"
	sed -n 4p window | grep -q '^RESOURCE' || fail "lines wrap: $(cat window)"
	tries=$((tries + 1))
	sleep 0.1
done
$mux resize-window -t t -x 110 -y 16
sees 'max of prod 100%'

# ---- the gateway stops, and restarts
kill -KILL "$(cat gate.pid)"
sees 'no gateway answers'
serve gate --api "unix:$here/api.sock" weir.yaml
sees 'policy version 1; 0 clients'
tries=0
while $mux capture-pane -p -t t | grep -q 'no gateway'; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || fail "top still shows that there is no gateway"
	sleep 0.05
done
$mux send-keys -t t q
ended 0

# ---- other ways out
start
sees TENANT
$mux send-keys -t t C-c
ended 0
for signal in TERM QUIT HUP; do
	start
	sees TENANT
	kill -$signal "$(top_pid)"
	ended 0
done

# ---- stopped and continued: meanwhile the terminal belongs to the shell
start
sees TENANT
pid=$(top_pid)
kill -TSTP "$pid"
tries=0
until [ "$($mux display-message -p -t t '#{alternate_on}')" = 0 ]; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || fail "a stopped top keeps the terminal"
	sleep 0.05
done
kill -CONT "$pid"
sees TENANT
$mux send-keys -t t q
ended 0

# ---- no terminal
run 2 weir top
has stderr 'needs a terminal; --once or --batch N'
run 2 weir top --interval 1ms
run 2 weir top --batch 0
run 2 weir top --sort beauty
kill $load 2>/dev/null
serve_stop gate
