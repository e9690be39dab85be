# SPDX-License-Identifier: BSD-3-Clause
# A file that changes its volume (another name, another resource, other options, a dir that served it) is closed as the one and opened as
# the other; a volume that was removed stays removed, and a file of a dir is one volume.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

mkdir vm
truncate -s 1M a.raw
truncate -s 2M b.raw
truncate -s 3M vm/d.raw

# policy LINE [LINE]: with these volumes of r, and of r2
policy()
{
	cat <<-END
	listen: "unix:$here/s.sock"
	classes: {gold: {weight: 4}}
	resources:
	  - name: r
	    volumes:
	      - {name: m, back: "memory:1M"}
	      - {dir: $here/vm, match: "*.raw", name: "vm-{stem}"}
	      $1
	  - name: r2
	    lock: false
	    volumes:
	      - {name: m2, back: "memory:1M"}
	      $2
	END
}

size()
{
	test "$(there "$1")" = "$2"
}

# becomes VOLUME SIZE LINE [LINE]: apply the policy, and wait for the volume
becomes()
{
	name=$1 bytes=$2
	shift 2
	policy "$@" >weir.yaml
	run 0 weir policy apply weir.yaml
	until_ok size "$name" "$bytes"
}

policy "- {name: a, back: \"file:$here/a.raw\"}" >weir.yaml
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml

becomes a2 1048576 "- {name: a2, back: \"file:$here/a.raw\"}"
run 0 gone a
becomes a 1048576 "" "- {name: a, back: \"file:$here/a.raw\"}"
becomes a 1048576 "- {name: a, back: \"file:$here/a.raw?threads=yes\"}"
policy "- {name: a, back: \"file:$here/a.raw?threads=2\"}" >weir.yaml
run 2 weir policy apply weir.yaml
has stderr "must be yes or no"
run 0 there a
becomes b 2097152 "- {name: a, back: \"file:$here/a.raw\"}
      - {name: b, back: \"file:$here/b.raw\"}"
becomes b 1048576 "- {name: b, back: \"file:$here/a.raw\"}
      - {name: a, back: \"file:$here/b.raw\"}"
until_ok size a 2097152
becomes d 3145728 "- {name: d, back: \"file:$here/vm/d.raw\"}"
becomes vm-d 3145728 ""
rm vm/d.raw
until_ok gone vm-d
hasnt gate.log volume-refused
hasnt gate.log file-deleted
hasnt gate.log "another process"

# ---- a file of a dir is one volume

truncate -s 1M vm/e.raw
until_ok there vm-e
for resource in r r2; do
	run 1 weir volume add "$resource" other "file:$here/vm/e.raw"
	has stderr "is the file of volume 'vm-e' of a dir"
done
run 0 there vm-e

# ---- a file has one user in the gateway, which is named: a resource, a volume of the file, of a dir, or of the API

truncate -s 1M p.raw q.raw vm/p.raw
policy "" >weir.yaml
echo "  - {name: plain, back: \"file:$here/p.raw\"}" >>weir.yaml
kill -HUP "$(cat gate.pid)"
until_ok there plain
run 1 weir volume add r other "file:$here/p.raw"
has stderr "is the file of resource 'plain'"
run 0 weir volume add r q "file:$here/q.raw"
run 1 weir volume add r other "file:$here/q.raw"
has stderr "is the file of volume 'q'"
for file in q vm/e; do
	policy "" >both.yaml
	echo "  - {name: plain, back: \"file:$here/$file.raw\"}" >>both.yaml
	run 2 weir policy apply both.yaml
	has stderr "resource 'plain': file:$here/$file.raw: is the file of volume '$(echo $file | tr / -)'"
done
until_ok there vm-p
serve_stop gate
policy "" >weir.yaml
echo "  - {name: plain, back: \"file:$here/vm/p.raw\"}" >>weir.yaml
echo "  - {name: plain2, back: \"file:$here/q.raw\"}" >>weir.yaml
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
run 0 weir volume list
hasnt stdout vm-p
has stdout "not served: volume 'q': file:$here/q.raw: is the file of resource 'plain2'"
hasnt gate.log "another process"
run 0 weir volume rm q

# ---- removed is removed

run 0 weir volume rm --keep vm-e
run 0 weir volume add r vm-e "file:$here/vm/e.raw"
for i in 1 2; do
	run 0 weir volume rm vm-e
	run 0 gone vm-e
done
test -s vm/e.raw || fail "rm deleted a file that was added"
run 0 weir volume add r vm-e "file:$here/vm/e.raw"
run 0 there vm-e

# ---- a volume that is not served any more, as its resource has another name

run 0 weir volume create r vm-f --size 1MiB
rm vm/p.raw
policy "" | sed 's/name: r$/name: other/' >weir.yaml
kill -HUP "$(cat gate.pid)"
until_ok gone vm-f
run 0 weir volume rm vm-f
run 0 gone vm-f
test ! -e vm/f.raw || fail "rm left the file of a volume that was not served"

run 2 weir volume add other x "file:$here/vm/absent"
hasnt stderr weir.yaml
run 2 weir volume add other x "file:/etc/passwd"
hasnt stderr weir.yaml
run 2 weir volume create other vm-g --size 0
has stderr "size: must be more than 0"
serve_stop gate
