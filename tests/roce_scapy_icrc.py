# SPDX-License-Identifier: Apache-2.0
# Prints, for each packet of a capture, the ICRC that scapy works out for it, as it lies in the
# packet. scapy.contrib.roce knows that of IPv4; that of IPv6 is made here, from scapy's own reading
# of the headers and zlib's CRC.
#
#   /usr/bin/python3 roce_scapy_icrc.py <file.pcap>
import struct
import sys
import zlib

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.utils import PcapReader


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


for packet in PcapReader(sys.argv[1]):
    if IP in packet:
        icrc = packet[BTH].compute_icrc(None)
    else:
        icrc = icrc_of_ipv6(packet[IPv6])
    print(icrc.hex())
