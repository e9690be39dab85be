# SPDX-License-Identifier: BSD-3-Clause
# `weir serve --check` refuses a match that no NBD client can fulfil, an export that ends beyond its
# resource, and secrets that every user can read, even in a valid policy. A start refuses the first
# two, and warns of the third, so that a configuration from before an upgrade still works.
. "$WEIR_SOURCE/tests/lib.sh"

here=$PWD
truncate -s 16M disk.img
umask 077
for secret in token key.pem keys.psk peers.key cluster.key up.pem; do
	head -c 48 /dev/urandom | base64 >$secret
done
: >cert.pem
cat >good.yaml <<END
version: 1
listen: unix:$here/s.sock
token: token
tls: {cert: cert.pem, key: key.pem, psk: keys.psk}
peers: {to: ["udp:127.0.0.1:7000"], key: peers.key}
resources:
  - {name: disk, back: "file:disk.img"}
  - {name: memory, back: "model:ssd+memory:8M"}
  - {name: up, back: "nbds://127.0.0.1/x", tls: {cert: cert.pem, key: up.pem}}
exports:
  - {name: a, resource: disk, offset: 8 MiB, size: 8 MiB}
  - {name: b, resource: memory, size: 8 MiB}
  - {name: c, resource: up, size: 8 TiB}
tenants:
  - {name: t, match: {export: "*"}}
END
run 0 weir serve --check good.yaml

refused() # EDIT PLACE TEXT
{
	sed "$1" good.yaml >bad.yaml
	cmp -s good.yaml bad.yaml && fail "the edit changed nothing: $1"
	for option in --check --read-only; do # the second option starts the gateway, if possible
		run 2 weir serve $option --api none bad.yaml
		has stderr "bad.yaml:$2: "
		has stderr "$3"
	done
}
refused 's|{export: "\*"}|{export: "*", path: "/x*"}|' 15:22 "path"
refused 's/offset: 8 MiB/offset: 9 MiB/' 11:5 "export 'a' ends beyond its resource 'disk', which has 16 MiB"
refused 's/resource: memory, size: 8 MiB/resource: memory, size: 8388609 B/' 12:5 "which has 8 MiB"
refused 's/resource: memory, size: 8 MiB/resource: memory, offset: 8 MiB/' 12:5 "export 'b' begins at the end of its resource 'memory', which has 8 MiB"

for secret in token key.pem keys.psk peers.key up.pem; do
	chmod o+r $secret
	run 2 weir serve --check good.yaml
	has stderr "$secret"
	has stderr "chmod"
	chmod 640 $secret
	run 0 weir serve --check good.yaml
done
sed '/^token:/d' good.yaml >option.yaml
run 0 weir serve --check --token-file token option.yaml
chmod 644 token
run 2 weir serve --check --token-file token option.yaml
has stderr "token: readable or writable by all users"
chmod 640 token
# A token that could be guessed, or a file of tokens that others may write, as at a start.
: >empty
echo short >short
for bad in empty short; do
	run 2 weir serve --check --token-file $bad option.yaml
	has stderr "$bad: "
	run 0 weir serve --check --api none --token-file $bad option.yaml
done
cat >tokens.yaml <<END
listen: unix:$here/s.sock
access: {tokens: tokens}
resources: [{name: disk, back: "memory:8M"}]
tenants: [{name: t, match: {export: "*"}}]
END
run 0 weir serve --check tokens.yaml
weir token add one --role read --file tokens >/dev/null
run 0 weir serve --check tokens.yaml
chmod 602 tokens
for option in --check --read-only; do
	run 2 weir serve $option --api "unix:$here/api.sock" tokens.yaml
	has stderr "tokens: writable by all users; use chmod 600"
done
cat >cluster.yaml <<END
cluster: {name: c, key: cluster.key, controller: "tcp:127.0.0.1:7400", servers: [disk]}
resources: [{name: disk, back: "memory:8M", controller: pshift}]
tenants: [{name: t, match: {export: "*"}}]
END
run 0 weir serve --check cluster.yaml
chmod o+r cluster.key
run 2 weir serve --check cluster.yaml
has stderr "cluster.key"

# A start warns.
. "$WEIR_SOURCE/tests/lib-serve.sh"
cat >small.yaml <<END
listen: unix:$here/s.sock
token: token
resources: [{name: disk, back: "memory:8M"}]
tenants: [{name: t, match: {export: "*"}}]
END
chmod 644 token
serve small small.yaml
has small.log "secret-readable"
serve_stop small

# A min above the capacity, which is learned only under load.
cat >min.yaml <<END
listen: unix:$here/s.sock
resources: [{name: disk, back: "model:server,rate=300,servers=4+memory:8M", depth: 8}]
tenants: [{name: t, min: 5k iops, match: {export: "*"}}]
END
serve min min.yaml
run 0 weir load -t 2500ms -d 32 "nbd+unix:///disk?socket=$here/s.sock"
has min.log 'min-beyond-capacity resource=disk mins="5k iops"'
serve_stop min
