# SPDX-License-Identifier: Apache-2.0
# Prints, for each frame of a capture, the ICRC that scapy works out for it, as it lies in the
# packet, and the UDP checksum. scapy.contrib.roce knows the ICRC of IPv4; that of IPv6 is made here,
# from scapy's own reading of the headers and zlib's CRC.
#
#   /usr/bin/python3 roce_scapy_icrc.py <file.pcap>
import socket
import struct
import sys
import zlib

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP, in4_chksum
from scapy.layers.inet6 import IPv6, in6_chksum
from scapy.utils import RawPcapReader


def ip_of(frame):
    """The IP packet, without tags before it and without what Ethernet fills up behind it."""
    at = 12
    while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    at += 2
    if frame[at] >> 4 == 4:
        ip = IP(frame[at:])
        return IP(frame[at : at + ip.len])
    ip = IPv6(frame[at:])
    return IPv6(frame[at : at + 40 + ip.plen])


def icrc_of_ipv6(ip):
    masked = ip.copy()
    masked.tc = 0xFF
    masked.fl = 0xFFFFF
    masked.hlim = 0xFF
    masked[UDP].chksum = 0xFFFF
    payload = bytearray(bytes(ip[UDP].payload))
    payload[4] = 0xFF
    masked[UDP].remove_payload()
    headers = bytes(masked)  # with the lengths as they were, for they are set
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + headers + bytes(payload[:-4])))


def udp_checksum(ip):
    udp = bytearray(bytes(ip[UDP]))
    udp[6:8] = b"\0\0"
    of = in6_chksum if IPv6 in ip else in4_chksum
    return of(socket.IPPROTO_UDP, ip, bytes(udp)) or 0xFFFF


for frame, _ in RawPcapReader(sys.argv[1]):
    ip = ip_of(frame)
    icrc = icrc_of_ipv6(ip) if IPv6 in ip else ip[BTH].compute_icrc(None)
    print(icrc.hex(), "%04x" % udp_checksum(ip))
