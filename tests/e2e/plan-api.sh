# SPDX-License-Identifier: BSD-3-Clause
# POST /v1/plan and /v1/plan/admit: the same numbers as weir plan, new tenants with their traces in the body, and no file is read for a
# caller that the operator's own policy file does not name.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

cp "$WEIR_SOURCE/examples/db.trace" "$WEIR_SOURCE/examples/web.trace" .
cat >weir.yaml <<END
resources: [{name: ssd1, back: "memory:64M", depth: 8}]
tenants:
  - {name: db, slo: "p95 < 10ms", trace: db.trace, match: {export: "db-*"}}
  - {name: web, slo: "p95 < 50ms", trace: web.trace, match: {export: "*"}}
END
serve one --api "unix:$PWD/api.sock" --listen "unix:$PWD/nbd.sock" weir.yaml
post() # STATUS PATH BODY
{
	got=$(curl -sS --unix-socket api.sock -o answer -w '%{http_code}' -X POST --data-binary "$3" "http://weir$2")
	[ "$got" = "$1" ] || fail "$2: $got, not $1: $(cat answer)"
}

post 200 /v1/plan '{"work": "100us+500MB/s"}'
run 0 weir plan --json --work 100us+500MB/s weir.yaml
python3 - <<'END' || fail "not the plan of weir plan"
import json
api, cli = json.load(open("answer")), json.load(open("stdout"))
rounded = lambda v: ({k: rounded(x) for k, x in v.items()} if isinstance(v, dict) else [rounded(x) for x in v] if isinstance(v, list)
                     else float(f"{v:.6g}") if isinstance(v, float) else v)
assert rounded(api) == rounded(cli) and api["feasible"] and api["tenants"][0]["replayed"]["latency"] > 0, (api, cli)
END
post 200 /v1/plan '{"work": "100us+500MB/s", "alignments": 0, "pairs": 2}'
python3 -c 'import json; t = json.load(open("answer"))["tenants"]; assert "replayed" not in t[0] and len(t[0]["stages"][0]["buckets"]) <= 2'

# new tenants: all or none; the traces are in the body; with and without the plan of before
body() # slo, trace's name
{
	python3 - "$1" "$2" <<'END'
import json, sys
slo, name = sys.argv[1:]
print(json.dumps({"work": "100us+500MB/s", "tenants": [{"name": "app", "slo": slo, "trace": name, "match": {"export": "app"}}],
                  "traces": {"app.trace": open("web.trace").read()}}))
END
}
post 200 /v1/plan/admit "$(body "p95 < 1s" app.trace)"
cp answer before
post 200 /v1/plan '{"work": "100us+500MB/s"}'
post 200 /v1/plan/admit "$(body "p95 < 1s" app.trace)"
cmp -s answer before || fail "the plan of before gives another answer"
python3 -c 'import json; a = json.load(open("answer")); assert a["feasible"] and a["tenants"][2]["new"] and a["tenants"][2]["name"] == "app"' || fail "app"
mv db.trace db.gone # it is not read again
post 200 /v1/plan/admit "$(body "p95 < 1us" app.trace)"
mv db.gone db.trace
python3 -c 'import json; a = json.load(open("answer")); assert not a["feasible"] and not a["tenants"][2]["met"]' || fail "app fits below 1us"
post 200 /v1/plan/admit "$(body "p95 < 5ms" app.trace | sed 's/{/{"admit_by": "replay", "remedies": true, /')"
python3 -c 'import json; a = json.load(open("answer")); assert a["admit_by"] == "replay" and a["tenants"][2]["replayed"]["requests"] > 0'

# what weir set changed counts, in a plan and for a new tenant
run 0 weir set --socket "$PWD/api.sock" web.slo "p95 < 1us"
post 200 /v1/plan '{"work": "100us+500MB/s"}'
python3 -c 'import json; a = json.load(open("answer")); assert a["tenants"][1]["slo"]["latency"] == 1e-6 and not a["feasible"], a' || fail "the slo that was set"
run 0 weir set --socket "$PWD/api.sock" web.slo "p95 < 50ms"
post 200 /v1/plan/admit "$(body "p95 < 1s" app.trace)"
python3 -c 'import json; a = json.load(open("answer")); assert a["tenants"][1]["slo"]["latency"] == 0.05 and a["feasible"], a' || fail "the slo that was set again"
run 0 weir set --socket "$PWD/api.sock" ssd1.depth 4
post 200 /v1/plan '{"work": "100us+500MB/s"}'
python3 -c 'import json; a = json.load(open("answer")); assert a["stages"][0]["depth"] == 4, a' || fail "the depth that was set"
run 0 weir set --socket "$PWD/api.sock" ssd1.depth 8

# files of others: not for a caller
echo "secret of the machine" >secret
for name in secret /etc/passwd ../secret web.trace; do
	post 400 /v1/plan/admit "$(body "p95 < 1s" "$name")"
	has answer "is not in the body's traces"
	! grep -q "secret of\|root:" answer || fail "the answer has lines of a file"
done
post 400 /v1/plan/admit '{"tenants": {"tenants": "secret"}}'
post 400 /v1/plan/admit '{"tenants": "secret"}'
post 400 /v1/plan/admit '{}'
post 400 /v1/plan '{"tenants": []}'
post 400 /v1/plan '{"wrok": "1us"}'
post 400 /v1/plan '{"alignments": -1}'
post 400 /v1/plan '[]'
post 400 /v1/plan '{'
post 400 /v1/plan ''
has answer "has no profile"
got=$(curl -sS --unix-socket api.sock -o answer -w '%{http_code}' -X PATCH http://weir/v1/plan)
[ "$got" = 405 ] || fail "PATCH /v1/plan: $got"

# a policy through the API may name any file: its files are not read
sed 's/db.trace/secret/' weir.yaml >sent.yaml
curl -fsS --unix-socket api.sock -X PUT --data-binary @sent.yaml "http://weir/v1/policy?name=weir.yaml" >answer
post 400 /v1/plan '{"work": "100us+500MB/s"}'
has answer "not that of the gateway's own file"
! grep -q "secret of" answer || fail "the answer has lines of a file"
serve_stop one
