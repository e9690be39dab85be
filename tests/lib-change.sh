# SPDX-License-Identifier: BSD-3-Clause
# lib-change.sh: for tests that change a gateway's policy. After lib.sh and lib-serve.sh.

command -v curl >/dev/null || skip "no curl"
here=$PWD
export WEIR_SOCKET="$here/api.sock"
uri() # EXPORT
{
	echo "nbd+unix:///$1?socket=$here/s.sock"
}

# policy A B: two tenants of weights A and B, which compete for one max
policy()
{
	cat <<END
listen: "unix:$here/s.sock"
state: state
resources: [{name: disk, back: "memory:64M", depth: 64}]
exports:
  - {name: a, size: 8 MiB}
  - {name: b, offset: 8 MiB, size: 8 MiB}
  - {name: c, offset: 16 MiB, size: 8 MiB}
tenants:
  - name: all
    max: 4k iops
    children:
      - {name: a, weight: $1, match: {export: a}}
      - {name: b, weight: $2, match: {export: b}}
  - {name: c, match: {export: c}}
END
}
version()
{
	curl -s --unix-socket "$here/api.sock" http://weir/v1/policy >got.json
	python3 -c 'import json; print(json.load(open("got.json"))["version"])'
}
is_version() # N
{
	[ "$(version)" = "$1" ] || fail "version $(version), not $1"
}
