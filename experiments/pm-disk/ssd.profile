# SPDX-License-Identifier: BSD-3-Clause
# Measured on the model: weir profile --depth 8 --duration 20s --data 400 --write model:ssd+memory:1G
profile: 1
depth: 8
device: 1073741824 B
sizes: [4 KiB, 16 KiB, 64 KiB, 256 KiB]
read:
  inside: {p50: 96.8us, p99: 643us, p99.9: 676us, max: 4.54ms}
  work:
    - {distance: 0 B, work: [19.24us, 19.24us, 20.53us, 81.9us]}
    - {distance: 64 MiB, work: [11.62us, 14.73us, 21.64us, 86.1us]}
    - {work: [11.59us, 14.35us, 21.5us, 81.9us]}
write:
  inside: {p50: 643us, p99: 2.998ms, p99.9: 4.686ms, max: 8.45ms}
  work:
    - {distance: 0 B, work: [154.1us, 154.1us, 154.1us, 300.3us]}
    - {distance: 64 MiB, work: [89.7us, 90.4us, 129.5us, 322.7us]}
    - {work: [88us, 93.3us, 128.8us, 315.8us]}
