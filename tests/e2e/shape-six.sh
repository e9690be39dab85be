# SPDX-License-Identifier: BSD-3-Clause
# weir shape: the classifier and IPv6, with headers of options before the transport's, and frames with one and two tags of VLANs: matches
# by address block and by port count packets in both directions; neighbour discovery, ARP and ssh are never shaped.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
net_up ping
in_a ip -6 addr add fd00:9::1/64 dev v0 nodad
in_b ip -6 addr add fd00:9::2/64 dev v0 nodad
cat >weir.yaml <<'END'
network:
  devices: [{name: v0, rate: 40 Mbit/s}]
tenants:
  - {name: six, net: {min: 1 Mbit/s}, match: {address: "fd00:9::/64"}}
  - {name: port, net: {min: 1 Mbit/s}, match: {port: 5001}}
  - {name: four, net: {min: 1 Mbit/s}, match: {address: 10.12.0.0/24}}
  - {name: tagged, net: {min: 1 Mbit/s}, match: {address: "fd00:12::/64"}}
  - {name: rest, net: {min: 1 Mbit/s}, match: [{address: 0.0.0.0/0}, {address: "::/0"}]}
END
bytes() # SERVICE DIR
{
	weir status --socket "$PWD/shape.sock" --json | tr -d ' \n' | tr '{' '\n' | sed -n "s/.*\"service\":\"$1\",\"dir\":\"$2\".*\"bytes\":\([0-9]*\).*/\1/p"
}
# counted SERVICE DIR BYTES: it has come to so many since the start
counted()
{
	i=0
	until [ "$(bytes "$1" "$2")" -eq "$3" ]; do
		i=$((i + 1))
		[ $i -lt 60 ] || fail "$1 $2: $(bytes "$1" "$2") bytes, not $3"
		sleep 0.05
	done
}
direct() # packets that were not shaped
{
	in_a tc -s qdisc show dev v0 | sed -n 's/.*direct_packets_stat \([0-9]*\).*/\1/p'
}
shape_up weir.yaml
in_a ping -q -6 -c 3 -i 0.01 -s 938 fd00:9::2 >/dev/null || fail "no IPv6" # 1,000 bytes with all headers
counted six out 3000
counted six in 3000

# UDP behind headers of options, of 8 bytes each; a port is a field as narrow as a block, and comes first.
in_a python3 - <<'END'
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("fd00:9::1", 5001))
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, bytes([0, 0, 1, 4, 0, 0, 0, 0]))
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, bytes([0, 0, 1, 4, 0, 0, 0, 0]))
for _ in range(3):
    s.sendto(bytes(922), ("fd00:9::2", 9))  # 1,000 with 14 + 40 + 16 + 8
END
counted port out 3000

# Frames with tags, which a program writes, since a kernel may have no VLANs: of 10.12.0.0/24 and fd00:12::/64.
cat >frames.py <<'END'
import socket
import struct
import sys

tags, n, what = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
four = bytes([10, 12, 0, 1, 10, 12, 0, 2])
if sys.argv[4:] == ["back"]:
    four = four[4:] + four[:4]
if what == "arp":
    type, packet = 0x0806, struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + bytes(20)
elif what == "discovery":  # a solicitation behind a header of options
    type = 0x86DD
    packet = struct.pack("!IHBB", 6 << 28, 32, 0, 255)
    packet += socket.inet_pton(socket.AF_INET6, "fd00:12::1") + socket.inet_pton(socket.AF_INET6, "fd00:12::2")
    packet += bytes([58, 0, 1, 4, 0, 0, 0, 0]) + bytes([135, 0]) + bytes(22)
elif what == "six":
    type = 0x86DD
    packet = struct.pack("!IHBB", 6 << 28, 946, 17, 64) + socket.inet_pton(socket.AF_INET6, "fd00:12::1")
    packet += socket.inet_pton(socket.AF_INET6, "fd00:12::2") + struct.pack("!HHHH", 7, 7, 946, 0) + bytes(938)
else:  # UDP, or ssh
    type = 0x0800
    ssh = what == "ssh"
    packet = struct.pack("!BBHHHBBH", 0x45, 0, 986, 1, 0, 64, 6 if ssh else 17, 0) + four
    packet += struct.pack("!HHHH", 4000, 22 if ssh else 7, 966, 0) + bytes(958)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("v0", 0))
for tag in range(tags):
    packet = struct.pack("!HH", 5 + tag, type) + packet
    type = 0x8100
for _ in range(n):
    s.send(b"\xff" * 6 + b"\x02\0\0\0\0\1" + struct.pack("!H", type) + packet)
END
four=0 six=0 in=0
for tags in 0 1 2; do
	in_a python3 frames.py $tags 3 udp
	four=$((four + 3 * (1000 + 4 * tags)))
	counted four out $four
	in_a python3 frames.py $tags 3 six
	six=$((six + 3 * (1000 + 4 * tags)))
	counted tagged out $six
	in_b python3 frames.py $tags 3 udp back # from 10.12.0.2, as what arrives; the first tag is not in the packet then
	in=$((in + 3 * (1000 + (tags > 1 ? 4 : 0))))
	counted four in $in
	was=$(direct)
	for what in arp ssh discovery; do
		in_a python3 frames.py $tags 3 $what
	done
	i=0
	until [ "$(direct)" -ge $((was + 9)) ]; do
		i=$((i + 1))
		[ $i -lt 60 ] || fail "with $tags tags: ARP, ssh or discovery is shaped: $(direct) packets, $was before"
		sleep 0.05
	done
done
counted four out $four
counted tagged out $six
# Reports of multicast groups, which are not discovery, are all that the rest has.
[ "$(bytes rest out)" -lt 900 ] || fail "packets are counted elsewhere, too: $(weir status --socket "$PWD/shape.sock")"

# ssh over IPv6 is never shaped.
in_b python3 -c '
import socket
s = socket.socket(socket.AF_INET6); s.bind(("::", 22)); s.listen()
open("listens", "w")
s.accept()[0].recv(10)' &
i=0
until [ -e listens ]; do
	i=$((i + 1))
	[ $i -lt 100 ] || fail "nothing listens"
	sleep 0.05
done
in_a python3 -c "import socket; s = socket.create_connection(('fd00:9::2', 22)); s.send(b'x'); s.close()" || fail "no ssh"
in_a ping -q -6 -c 1 -s 938 fd00:9::2 >/dev/null
counted six out 4000
grep ' error ' shape.log && fail "see above"
shape_down
shape_clean
exit 0
