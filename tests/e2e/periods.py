# SPDX-License-Identifier: BSD-3-Clause
"""What tenants got in each QoS period, from what `weir load --series` wrote.

Nobody tells a client when a period begins: it is the place in it, to 100 ms, at which the fullest period is least full.
If a limit is kept, there is such a place; if it is passed, wherever one begins to count, there is none."""
import collections
import csv


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
