# SPDX-License-Identifier: BSD-3-Clause
# lib-kept.sh: for tests that check with tests/e2e/kept.py that a gateway keeps its policy. After
# lib.sh and lib-serve.sh.

here=$PWD
export WEIR_SOCKET="$here/api.sock" NBD_SOCKET="$here/s.sock" PYTHONPATH="$WEIR_SOURCE/tests/e2e"

# uri EXPORT: its address at the gateway that listens at s.sock
uri()
{
	echo "nbd+unix:///$1?socket=$here/s.sock"
}

# there EXPORT, gone EXPORT: the gateway serves the export, or refuses it
there()
{
	nbdinfo --size "$(uri "$1")"
}

gone()
{
	! nbdinfo --size "$(uri "$1")"
}

# until_ok COMMAND...: try for up to 20 s
until_ok()
{
	for i in $(seq 200); do
		"$@" >tried 2>&1 && return
		sleep 0.1
	done
	fail "never: $* ($(cat tried))"
}

# says TEXT: wait for it in the log of `gate`, up to 10 s
says()
{
	tries=0
	until grep -qF -e "$1" gate.log; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || fail "the log does not have: $1: $(cat gate.log)"
		sleep 0.05
	done
}

# volumes_policy MODEL VOLUME...: the start of a policy with one resource, `disk`, of depth 8; a volume is NAME=BACK, its storage
# as slow as the model
volumes_policy()
{
	model=$1
	shift
	cat <<-END
	listen: "unix:$here/s.sock"
	resources:
	  - name: disk
	    depth: 8
	    volumes:
	END
	for volume; do
		echo "      - {name: ${volume%%=*}, back: \"$model+${volume#*=}\"}"
	done
}
