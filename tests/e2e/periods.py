# SPDX-License-Identifier: BSD-3-Clause
"""Requests of tenants in each QoS period, from the output of `weir load --series`.

A client does not know when a period begins: it is taken as the offset, to 100 ms, at which the fullest period is
least full. If a limit is kept, there is such an offset; if it is exceeded for every offset, there is none."""
import collections
import csv
import sys


def read(path):
    """Return by tenant the requests in each 100 ms; jobs are called TENANT-SERVER."""
    bins = collections.defaultdict(collections.Counter)
    for row in csv.DictReader(open(path)):
        bins[row["job"].split("-")[0]][round(float(row["time_s"]) * 10)] += float(row["iops"]) / 10
    return bins


def whole(bins, offset, length, first, last):
    """Return one tenant's requests from a bin on, per complete period."""
    return [sum(bins[b] for b in range(at, at + length)) for at in range(first + offset, last - length + 1, length)]


def periods(bins, length, skip):
    """Return {tenant: [requests]} of all tenants, without the first `skip` bins."""
    last = min(max(b) for b in bins.values()) - 1  # the last bin has late answers

    def at(offset):
        return {t: whole(b, offset, length, skip, last) for t, b in bins.items()}

    return min((at(o) for o in range(length)), key=lambda found: max(max(p) for p in found.values()))


def kept(path, least, of=(150, 300)):
    """Exit with the reason unless every tenant has its min, `of[0]` a period on the mean and `least` of it in
    each, and never exceeds its max, `of[1]`, after two seconds. A request that passed the gate in one period
    may be answered in the next."""
    got = periods(read(path), 10, 20)
    print(got)
    for tenant, each in got.items():
        if max(each) > of[1] * 1.1:
            sys.exit("%s passes its max: %s" % (tenant, each))
        if min(each) < of[0] * least or sum(each) < of[0] * 0.99 * len(each):
            sys.exit("%s has not its min: %s" % (tenant, each))
