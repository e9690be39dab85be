# SPDX-License-Identifier: BSD-3-Clause
# lib-plan.sh: a trace, a profile and the API for tests of plans. After lib.sh.

# plan_trace NAME...: six bursts of 20 reads, once a second: 0.1 s of work each on a device that does 200 a second
plan_trace()
{
	python3 - "$@" <<'END'
import sys
for name in sys.argv[1:]:
    with open(name, "w") as f:
        f.write("# weir-trace 1\n")
        for second in range(6):
            for i in range(20):
                f.write(f"{second * 10**9} R {(second * 20 + i) * 65536} 4096 0\n")
END
}

# plan_profile NAME: that of four servers that do 200 a second together, whatever the size
plan_profile()
{
	cat >"$1" <<'END'
profile: 1
depth: 4
sizes: [4 KiB, 1 MiB]
read: {inside: {max: 20ms}, work: [{work: [5ms, 5ms]}]}
write: {inside: {max: 20ms}, work: [{work: [5ms, 5ms]}]}
END
}

# api METHOD PATH [FILE]: ask at the socket $api_at: its answer in ./stdout, its status in ./code
api()
{
	curl -s -X "$1" ${3:+--data-binary "@$3"} -o stdout -w '%{http_code}' --unix-socket "$api_at" "http://weir$2" >code
}
