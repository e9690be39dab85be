# SPDX-License-Identifier: BSD-3-Clause
# weir experiment: the list equals the folder's content, a missed claim gives exit status 1, the
# same seed gives the same bytes, and --out writes data and pictures. (make test runs every
# experiment.)
. "$WEIR_SOURCE/tests/lib.sh"

run 0 weir experiment list --dir "$WEIR_SOURCE/experiments"
for folder in "$WEIR_SOURCE"/experiments/*/; do
	id=$(basename "$folder")
	grep -q "^ *$id " stdout || fail "$id is not listed"
	id_line=$(sed -n 's/^id: *//p' "$folder/experiment.yaml")
	[ "$id_line" = "$id" ] || fail "$id: its file has id: $id_line"
	grep -q '^without:' "$folder/experiment.yaml" || fail "$id: neither 'without' nor a reason for having none"
done

# A parameter, and a folder that may not exist.
mkdir -p other/needy here
cat >other/needy/scenario.yaml <<'END'
duration: 2s
devices: [{name: d, kind: server, rate: 1k iops}]
hosts: [{name: h, count: 2, workloads: [{traces: nowhere}]}]
END
cat >other/needy/experiment.yaml <<'END'
id: needy
title: It needs traces
source: ours
parameters: {traces: nowhere}
needs: $traces
runs: [{name: r, scenario: scenario.yaml, set: {"hosts[0].workloads[0].traces": $traces}}]
claims: [{what: requests, value: r.total.ios, band: [6, 6]}]
END
run 77 weir experiment run needy --dir other
has stdout 'skipped: needy needs other/needy/nowhere, which does not exist'
run 77 weir experiment run all --dir other
printf '# weir-trace 1\n0 R 0 4096 0\n500000000 W 4096 4096 0\n900000000 R 0 512 0\n' >here/a.trace
echo 'no trace' >here/README
run 0 weir experiment run needy --dir other --set traces=here
has stdout '1 claims, 0 missed'
run 2 weir experiment run needy --dir other --set traces=there
has stderr 'there'
run 2 weir experiment run needy --dir other --set trace=here
has stderr 'parameters.trace'
run 2 weir experiment run needy --dir other --set traces
sed -i 's/^parameters:.*/parameters: {traces: nowhere, time: 2s}/; s/set: {/&duration: $time, /' other/needy/experiment.yaml
run 1 weir experiment run needy --dir other --set traces=here --set time=700ms
has stdout 'MISS  requests      –     4  6'
run 0 weir experiment run needy --dir other --set time=700ms --set traces=here --set time=2s
run 2 weir experiment run needy --dir other --set trace=here --set time=2s
has stderr 'parameters.trace'
run 2 weir experiment run needy --dir other --set =1 --set traces=here

# One claim holds, one does not: the run names it, and fails.
mkdir -p mine/half
cat >mine/half/scenario.yaml <<'END'
duration: 2s
devices:
  - {name: d, kind: server, rate: 1k iops}
hosts:
  - name: h
    device: d
    policy: {tenants: [{name: t}]}
    workloads: [{outstanding: 1, size: 4 KiB, region: 1 GiB}]
END
claims() # BAND: write an experiment whose second claim has it
{
	cat >mine/half/experiment.yaml <<END
id: half
title: One that holds and one that may not
source: ours
runs: [{name: r, scenario: scenario.yaml}]
claims:
  - {what: it serves something, value: r.tenant.h.t.iops, band: [1, none]}
  - {what: it serves so much, value: r.tenant.h.t.iops, band: $1}
plots:
  - {name: one, title: It serves, x: time here, y: iops there, lines: [{label: all of it, series: r.tenant.h.t.throughput}]}
  - {name: two, panels: true, title: It serves, x: time here, y: iops there,
     lines: [{label: all of it, series: r.tenant.h.t.throughput}]}
END
}
claims '[1, none]'
run 0 weir experiment run half --dir mine --seed 3
hasnt stdout MISS
cp stdout first
run 0 weir experiment run half --dir mine --seed 3
cmp -s stdout first || fail "the same seed, other bytes"
run 0 weir experiment run half --dir mine --seed 4
cmp -s stdout first && fail "another seed, the same bytes"
claims '[1M, none]'
run 1 weir experiment run half --dir mine --seed 3
has stdout MISS
[ "$(grep -c MISS stdout)" -ge 1 ] || fail "no MISS"
run 1 weir experiment run all --dir mine --out out
[ -s out/results.md ] || fail "no results.md"
find out/data/half -name values.csv | grep -q . || fail "no data"
if command -v gnuplot >/dev/null; then # nothing is missing in a picture
	for picture in out/pictures/half-one.svg out/pictures/half-two.svg; do
		for text in 'It serves' 'time here' 'iops there' 'all of it'; do
			has "$picture" "$text"
		done
	done
fi

# Without the mechanism the claim must miss: if it holds or cannot be computed, the run fails.
run 2 weir experiment run half --dir mine --without
has stderr "half: 'without' names no mechanism"
without() # SET MISS
{
	claims '[1, none]'
	echo "without: [{mechanism: the server, set: {$1}, miss: [$2]}]" >>mine/half/experiment.yaml
}
without '"devices[0].rate": 0.001 iops' 'it serves *'
run 0 weir experiment run half --dir mine --without
has stdout 'without the server (devices[0].rate: 0.001 iops): 2 claims must be missed, 2 are'
has stdout '2 claims, 2 missed as they must be'
run 0 weir experiment run half --dir mine --without --json
has stdout '"without": "the server"'
without '"devices[0].rate": 2k iops' 'it serves something'
run 1 weir experiment run half --dir mine --without
has stdout '1 claims must be missed, 0 are'
run 2 weir experiment run half --dir mine --without --out never
has stderr 'cannot be used with --without'
claims '[1, none]'
echo 'without: the server is alone' >>mine/half/experiment.yaml
run 0 weir experiment run half --dir mine --without
has stdout 'no mechanism to switch off: the server is alone'
claims '[1M, none]'

# Several seeds: a mean with its interval, and the page.
claims '[1, none]'
run 0 weir experiment run half --dir mine --seed 3 --seeds 3 --out seeds
has stdout ' ± '
has stdout '2 claims, 0 missed (seed 3 to 5)'
has seeds/results.md '`weir experiment run all --seed 3 --seeds 3 --out DIR`'
has seeds/index.html '<td class=ok>ok</td><td>it serves so much</td>'
has seeds/index.html '<a href="#half">half</a>'
cmp -s seeds/page.css "$WEIR_SOURCE/web/dist/page.css" || fail "the page has no style"
python3 - <<'END' || fail "the page is not well formed"
import html.parser, pathlib
open_, void = [], {"meta", "link", "img", "br"}
class Parser(html.parser.HTMLParser):
    def handle_starttag(self, tag, attributes):
        if tag not in void:
            open_.append(tag)
        for name, value in attributes:
            if name in ("src", "href") and not value.startswith("#"):
                assert pathlib.Path("seeds", value).exists() or value.endswith(".svg"), value
    def handle_endtag(self, tag):
        assert open_.pop() == tag, tag
Parser().feed(pathlib.Path("seeds/index.html").read_text())
assert not open_, open_
END
run 0 weir experiment run half --dir mine --seed 3 --seeds 2 --json
[ "$(grep -c '"seed"' stdout)" -eq 2 ] || fail "--json has not one object for each seed"
for n in 0 1001 x; do
	run 2 weir experiment run half --dir mine --seeds "$n"
	has stderr '--seeds'
done
claims '[1M, none]'

run 2 weir experiment run hafl --dir mine
has stderr "half"
# Names are checked before any experiment runs or any folder is made.
run 2 weir experiment run half nosuch --dir mine --out never
has stderr "no experiment 'nosuch'"
[ -s stdout ] && fail "an experiment was run before a name was refused"
[ -e never ] && fail "--out was made before a name was refused"
run 2 weir experiment run half half --live --dir mine
has stderr "half cannot run live"
mkdir mine/last
echo 'id: last' >mine/last/experiment.yaml
run 2 weir experiment run half last --dir mine
[ -s stdout ] && fail "an experiment was run before a bad file was refused"
run 2 weir experiment run all --dir mine
[ -s stdout ] && fail "an experiment was run before a bad file was refused"
rm -r mine/last
run 2 weir experiment run
run 2 weir experiment list --dir nowhere
mkdir empty
run 2 weir experiment run all --dir empty # nothing claimed is nothing shown
has stderr 'contains no experiment'
run 1 weir experiment run half --dir mine --out ''
has stderr 'the folder needs a name'
touch file
run 1 weir experiment run half --dir mine --out file/below
has stderr 'file'

# The program finds the experiments next to it, from any folder.
mkdir -p tree/bin tree/share/weir
cp "$(command -v weir)" tree/bin/weir
cp -r mine tree/share/weir/experiments
run 0 tree/bin/weir experiment list
has stdout half
WEIR_EXPERIMENTS=nowhere run 2 tree/bin/weir experiment list
has stderr WEIR_EXPERIMENTS
