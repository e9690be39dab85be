# SPDX-License-Identifier: BSD-3-Clause
# Measured on the model: weir profile --depth 1 model:disk,preset=10k+memory:16G
profile: 1
depth: 1
device: 17179869184 B
sizes: [4 KiB, 16 KiB, 64 KiB, 256 KiB]
read:
  inside: {p50: 203.8us, p99: 7.9ms, p99.9: 9.9ms, max: 10.68ms}
  work:
    - {distance: 0 B, work: [151.9us, 214.4us, 760us, 3.058ms]}
    - {distance: 64 MiB, work: [3.43ms, 3.537ms, 4.065ms, 6.56ms]}
    - {distance: 4 GiB, work: [3.798ms, 4.027ms, 4.73ms, 7.02ms]}
    - {work: [4.277ms, 4.494ms, 4.84ms, 7.24ms]}
write:
  inside: {p50: 5.865ms, p99: 10.16ms, p99.9: 11.21ms, max: 11.99ms}
  work:
    - {distance: 0 B, work: [6.05ms, 6.19ms, 6.764ms, 9.06ms]}
    - {distance: 64 MiB, work: [3.995ms, 4.063ms, 4.66ms, 6.9ms]}
    - {distance: 4 GiB, work: [4.42ms, 4.686ms, 5.345ms, 7.47ms]}
    - {work: [4.89ms, 4.89ms, 5.566ms, 7.87ms]}
