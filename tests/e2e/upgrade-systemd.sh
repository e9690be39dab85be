# SPDX-License-Identifier: BSD-3-Clause
# `systemctl restart` under a systemd of the test's own, in a namespace: clients stay connected, over the manager's descriptor store;
# a start that fails leaves everything to the next one; and `systemctl stop` is a stop.
. "$WEIR_SOURCE/tests/lib.sh"

[ "$(id -u)" -eq 0 ] || skip "not root: no systemd in a namespace"
[ -x /usr/lib/systemd/systemd ] && command -v dbus-daemon >/dev/null || skip "no systemd, or no D-Bus"
truncate -s 64M disk.img slow.img
cat >weir.yaml <<END
listen: ["unix:$PWD/s.sock"]
resources:
  - {name: disk, back: "file:$PWD/disk.img", depth: 4}
  - {name: slow, back: "file:$PWD/slow.img"}
tenants:
  - {name: a, match: {export: disk}}
  - {name: s, match: {export: slow}, max: 40 iops}
END
units=$PWD/home/.config/systemd/user
mkdir -p "$units"
printf '[Unit]\nDescription=all\n' >"$units/basic.target"
printf '[Socket]\nListenStream=%%t/bus\n' >"$units/dbus.socket"
cat >"$units/dbus.service" <<END
[Service]
Type=notify
ExecStart=/usr/bin/dbus-daemon --session --address=systemd: --nofork --nopidfile --systemd-activation --syslog-only
END
cat >"$units/weir.service" <<END
[Unit]
StartLimitIntervalSec=0
[Service]
Type=notify
ExecStartPre=/bin/sh -c 'test ! -e $PWD/broken'
ExecStart=$WEIR serve --api none $PWD/weir.yaml
StandardError=append:$PWD/weir.log
FileDescriptorStoreMax=100
Restart=on-failure
RestartSec=100ms
END
cat >inside.sh <<'END'
mount -t tmpfs tmpfs /run && mkdir -p /run/u /run/systemd/system || exit 77
export XDG_RUNTIME_DIR=/run/u HOME="$PWD/home"
/usr/lib/systemd/systemd --user --unit=basic.target >systemd.log 2>&1 &
tries=0
until systemctl --user is-system-running >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || exit 77
	sleep 0.05
done
systemctl --user start dbus.socket
python3 -B "$WEIR_SOURCE/tests/e2e/upgrade-systemd.py"
got=$?
systemctl --user stop weir
systemctl --user exit
exit $got
END
got=0
timeout -k 5 100 unshare -fpm --mount-proc sh inside.sh || got=$?
[ "$got" -ne 77 ] || skip "systemd does not start in a namespace here"
[ "$got" -eq 0 ] || { cat weir.log systemd.log; fail "exit status $got"; }
