# SPDX-License-Identifier: BSD-3-Clause
"""What tenants got in each QoS period, from what `weir load --series` wrote.

Nobody tells a client when a period begins: it is the place in it, to 100 ms, at which the fullest period is least full.
If a limit is kept, there is such a place; if it is passed, wherever one begins to count, there is none."""
import collections
import csv
import sys


def read(path):
    """By tenant, requests in each 100 ms; jobs are called TENANT-SERVER."""
    bins = collections.defaultdict(collections.Counter)
    for row in csv.DictReader(open(path)):
        bins[row["job"].split("-")[0]][round(float(row["time_s"]) * 10)] += float(row["iops"]) / 10
    return bins


def whole(bins, offset, length, first, last):
    """Of one tenant, from a bin on, period by period, as far as they are whole."""
    return [sum(bins[b] for b in range(at, at + length)) for at in range(first + offset, last - length + 1, length)]


def periods(bins, length, skip):
    """Of all tenants: {tenant: [requests]}, with `skip` bins left out at first."""
    last = min(max(b) for b in bins.values()) - 1  # at the end some are answered that were long sent

    def at(offset):
        return {t: whole(b, offset, length, skip, last) for t, b in bins.items()}

    return min((at(o) for o in range(length)), key=lambda found: max(max(p) for p in found.values()))


def kept(path, least, of=(150, 300)):
    """Exits with the reason unless every tenant has its min, `of[0]` a period on the mean and `least` of it in each, and
    passes its max, `of[1]`, in none, after two seconds. What passed the gates in one period may be answered in the next."""
    got = periods(read(path), 10, 20)
    print(got)
    for tenant, each in got.items():
        if max(each) > of[1] * 1.1:
            sys.exit("%s passes its max: %s" % (tenant, each))
        if min(each) < of[0] * least or sum(each) < of[0] * 0.99 * len(each):
            sys.exit("%s has not its min: %s" % (tenant, each))
