// SPDX-License-Identifier: Apache-2.0
// What a switch does with a READ that carries a key, in P4_16 for the v1model of bmv2: the same
// tables and the same result as src/dataplane/packet_function.cpp. Entries are written by
// src/dataplane/p4_entries.cpp; docs/design/index_in_network.md says how to run it.
//
// A READ request by a map's keyed key carries a number where its address would be. The fat root
// finds the range of the number in four stages of 16 bits; each of three sets of nodes compares it
// with 15 pivots; the address that was found last is written, with the map's redirect key, and ICRC
// and UDP checksum are mended by their differences. All else passes untouched.
//
// Of switches in a row each has a part of the tables: a READ whose walk leads beyond it goes to the
// next one with a shim before it (docs/formats/index_shim.md). Which of them is the first and which
// the last, the entries of `ports` say.
#include <core.p4>
#include <v1model.p4>
#include "index_constants.p4"

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> ether_type;
}

header vlan_t {
    bit<16> tag;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_bytes;
    bit<16> id;
    bit<1> reserved;
    bit<1> dont_fragment;
    bit<1> more_fragments;
    bit<13> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header ipv4_options_t {
    varbit<320> bytes;
}

header ipv6_t {
    bit<4> version;
    bit<8> traffic_class;
    bit<20> flow_label;
    bit<16> payload_bytes;
    bit<8> next_header;
    bit<8> hop_limit;
    bit<128> source;
    bit<128> destination;
}

header udp_t {
    bit<16> source_port;
    bit<16> destination_port;
    bit<16> bytes;
    bit<16> checksum;
}

// What one switch tells the next one. Its words add up to nothing, as UDP counts.
header shim_t {
    bit<8> version_kind;
    bit<8> hops;
    bit<16> server;
    bit<32> generation;
    bit<32> cursor;
    bit<16> port;
    bit<16> checksum;
}

header bth_t {
    bit<8> opcode;
    bit<1> solicited;
    bit<1> migrated;
    bit<2> pad;
    bit<4> version;
    bit<16> partition;
    bit<8> congestion;
    bit<24> destination;
    bit<8> acknowledge;
    bit<24> psn;
}

header reth_t {
    bit<64> address;
    bit<32> rkey;
    bit<32> length;
}

// The least significant byte first.
header icrc_t {
    bit<8> byte_0;
    bit<8> byte_1;
    bit<8> byte_2;
    bit<8> byte_3;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t outer_vlan;
    vlan_t inner_vlan;
    ipv4_t ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t ipv6;
    udp_t udp;
    shim_t shim;
    bth_t bth;
    reth_t reth;
    icrc_t icrc;
}

struct metadata_t {
    bit<16> map;
    bit<32> redirect_key;
    bit<32> generation_here; // of the tables
    bit<8> hops_behind; // switches that have more of them
    bit<32> nodes;     // of the first set, where a part has no fat root
    bit<64> number;    // that the READ carries
    bit<32> result;    // the range of the fat root
    bit<32> sub_table; // of the next stage
    bit<1> leads;      // whether there is one
    bit<64> address;   // the best one so far
    bit<32> node;      // of the next set
    bit<1> has_node;
    bit<1> beyond;     // the node is one of the next switch
    bit<1> found;      // there is an address
    bit<15> reached;   // a bit for each pivot, the lowest for the first
    bit<4> child;
    bit<32> icrc_old;
    bit<32> icrc_new;
    bit<32> sum;
    bit<16> udp_bytes; // as IP says
    bit<1> to_node;    // the frame is on its way to the node
    bit<1> first;      // it comes from a host
    bit<1> last;       // it goes to one
}

parser index_parser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            TYPE_VLAN: outer_vlan;
            TYPE_SERVICE_VLAN: outer_vlan;
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            default: accept;
        }
    }
    state outer_vlan {
        packet.extract(hdr.outer_vlan);
        transition select(hdr.outer_vlan.ether_type) {
            TYPE_VLAN: inner_vlan;
            TYPE_SERVICE_VLAN: inner_vlan;
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            default: accept;
        }
    }
    state inner_vlan {
        packet.extract(hdr.inner_vlan);
        transition select(hdr.inner_vlan.ether_type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.more_fragments,
                          hdr.ipv4.fragment, hdr.ipv4.protocol) {
            (4, 5, 0, 0, PROTOCOL_UDP): ipv4_length;
            (4, 4w6 &&& 4w14, 0, 0, PROTOCOL_UDP): ipv4_options;
            (4, 4w8 &&& 4w8, 0, 0, PROTOCOL_UDP): ipv4_options;
            default: accept;
        }
    }
    state ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>) hdr.ipv4.ihl - 5) * 32);
        transition ipv4_length;
    }
    state ipv4_length {
        meta.udp_bytes = hdr.ipv4.total_bytes - (bit<16>) hdr.ipv4.ihl * 4;
        transition udp;
    }
    state ipv6 {
        packet.extract(hdr.ipv6);
        meta.udp_bytes = hdr.ipv6.payload_bytes;
        transition select(hdr.ipv6.version, hdr.ipv6.next_header) {
            (6, PROTOCOL_UDP): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.destination_port, hdr.udp.bytes, meta.udp_bytes) {
            (ROCE_PORT, DATAGRAM_BYTES, DATAGRAM_BYTES): bth;
            (SHIM_PORT, CARRIED_BYTES, CARRIED_BYTES): shim;
            default: accept;
        }
    }
    state shim {
        packet.extract(hdr.shim);
        transition bth;
    }
    state bth {
        packet.extract(hdr.bth);
        transition select(hdr.bth.opcode, hdr.bth.pad, hdr.bth.version) {
            (OPCODE_READ_REQUEST, 0, 0): reth;
            default: accept;
        }
    }
    state reth {
        packet.extract(hdr.reth);
        packet.extract(hdr.icrc);
        transition accept;
    }
}

control no_verification(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

// Whether a number is at least a pivot: by the higher halves, or where these are equal the lower
// ones, and of each half by the sign of a difference of 32 bits; where the highest bits differ,
// that of the number tells. One expression without calls or branches, as it stands in an action.
bit<1> reaches(in bit<64> number, in bit<64> pivot) {
    bit<32> high = number[63:32] - pivot[63:32];
    bit<32> low = number[31:0] - pivot[31:0];
    bit<1> high_reaches = (number[63:63] & ~pivot[63:63])
        | (~(number[63:63] ^ pivot[63:63]) & ~high[31:31]);
    bit<1> low_reaches = (number[31:31] & ~pivot[31:31])
        | (~(number[31:31] ^ pivot[31:31]) & ~low[31:31]);
    return high != 0 ? high_reaches : low_reaches;
}

control index_ingress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }
    // A key is the node's own word: a client may offer memory by a key of the same number, and the
    // node's READs of that pass.
    action forward(bit<9> port, bit<1> to_node, bit<1> first, bit<1> last) {
        standard.egress_spec = port;
        meta.to_node = to_node;
        meta.first = first;
        meta.last = last;
    }
    table ports {
        key = { standard.ingress_port: exact; }
        actions = { forward; drop; }
        default_action = drop();
    }

    // Which map a key is the keyed one of, and the range that is found where no entry is.
    action set_map(bit<16> map, bit<32> redirect_key, bit<32> preset, bit<32> generation,
                   bit<8> hops) {
        meta.map = map;
        meta.redirect_key = redirect_key;
        meta.generation_here = generation;
        meta.hops_behind = hops;
        meta.result = preset;
        meta.sub_table = 0;
        meta.leads = 1;
    }
    table maps {
        key = { hdr.reth.rkey: exact; }
        actions = { set_map; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    // The same of a part without a fat root, where the cursor is of these tables, and for this
    // switch: with as many hops left as there are parts from here on.
    action set_part(bit<16> map, bit<32> redirect_key, bit<32> nodes) {
        meta.map = map;
        meta.redirect_key = redirect_key;
        meta.generation_here = hdr.shim.generation;
        meta.hops_behind = hdr.shim.hops - 1;
        meta.nodes = nodes;
    }
    table parts {
        key = {
            hdr.reth.rkey: exact;
            hdr.shim.generation: exact;
            hdr.shim.server: exact;
            hdr.shim.hops: exact;
        }
        actions = { set_part; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    action take(bit<32> result, bit<1> leads, bit<32> next) {
        meta.result = result;
        meta.leads = leads;
        meta.sub_table = next;
    }
    table fat_root_1 {
        key = {
            meta.map: exact;
            meta.sub_table: exact;
            meta.number[63:48]: range;
        }
        actions = { take; NoAction; }
        default_action = NoAction();
        size = 2048;
    }
    table fat_root_2 {
        key = {
            meta.map: exact;
            meta.sub_table: exact;
            meta.number[47:32]: range;
        }
        actions = { take; NoAction; }
        default_action = NoAction();
        size = 2048;
    }
    table fat_root_3 {
        key = {
            meta.map: exact;
            meta.sub_table: exact;
            meta.number[31:16]: range;
        }
        actions = { take; NoAction; }
        default_action = NoAction();
        size = 2048;
    }
    table fat_root_4 {
        key = {
            meta.map: exact;
            meta.sub_table: exact;
            meta.number[15:0]: range;
        }
        actions = { take; NoAction; }
        default_action = NoAction();
        size = 2048;
    }

    action set_way(bit<64> address, bit<1> has_node, bit<1> beyond, bit<32> node) {
        meta.address = address;
        meta.has_node = has_node;
        meta.beyond = beyond;
        meta.node = node;
        meta.found = 1;
    }
    table fat_root_ways {
        key = {
            meta.map: exact;
            meta.result: exact;
        }
        actions = { set_way; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    // All pivots of a node; behind its last one they are the largest number.
    action compare(bit<64> pivot_0,
                   bit<64> pivot_1,
                   bit<64> pivot_2,
                   bit<64> pivot_3,
                   bit<64> pivot_4,
                   bit<64> pivot_5,
                   bit<64> pivot_6,
                   bit<64> pivot_7,
                   bit<64> pivot_8,
                   bit<64> pivot_9,
                   bit<64> pivot_10,
                   bit<64> pivot_11,
                   bit<64> pivot_12,
                   bit<64> pivot_13,
                   bit<64> pivot_14) {
        meta.reached[0:0] = reaches(meta.number, pivot_0);
        meta.reached[1:1] = reaches(meta.number, pivot_1);
        meta.reached[2:2] = reaches(meta.number, pivot_2);
        meta.reached[3:3] = reaches(meta.number, pivot_3);
        meta.reached[4:4] = reaches(meta.number, pivot_4);
        meta.reached[5:5] = reaches(meta.number, pivot_5);
        meta.reached[6:6] = reaches(meta.number, pivot_6);
        meta.reached[7:7] = reaches(meta.number, pivot_7);
        meta.reached[8:8] = reaches(meta.number, pivot_8);
        meta.reached[9:9] = reaches(meta.number, pivot_9);
        meta.reached[10:10] = reaches(meta.number, pivot_10);
        meta.reached[11:11] = reaches(meta.number, pivot_11);
        meta.reached[12:12] = reaches(meta.number, pivot_12);
        meta.reached[13:13] = reaches(meta.number, pivot_13);
        meta.reached[14:14] = reaches(meta.number, pivot_14);
    }
    action set_child(bit<4> child) {
        meta.child = child;
    }

    table set_1_pivots {
        key = {
            meta.map: exact;
            meta.node: exact;
        }
        actions = { compare; NoAction; }
        default_action = NoAction();
        size = 4096;
    }
    // Ones up to the last pivot that the number reaches: how many there are.
    table set_1_child {
        key = { meta.reached: exact; }
        actions = { set_child; }
        const default_action = set_child(0);
        const entries = {
            0x0000: set_child(0);
            0x0001: set_child(1);
            0x0003: set_child(2);
            0x0007: set_child(3);
            0x000F: set_child(4);
            0x001F: set_child(5);
            0x003F: set_child(6);
            0x007F: set_child(7);
            0x00FF: set_child(8);
            0x01FF: set_child(9);
            0x03FF: set_child(10);
            0x07FF: set_child(11);
            0x0FFF: set_child(12);
            0x1FFF: set_child(13);
            0x3FFF: set_child(14);
            0x7FFF: set_child(15);
        }
    }
    table set_1_ways {
        key = {
            meta.map: exact;
            meta.node: exact;
            meta.child: exact;
        }
        actions = { set_way; NoAction; }
        default_action = NoAction();
        size = 65536;
    }

    table set_2_pivots {
        key = {
            meta.map: exact;
            meta.node: exact;
        }
        actions = { compare; NoAction; }
        default_action = NoAction();
        size = 4096;
    }
    // Ones up to the last pivot that the number reaches: how many there are.
    table set_2_child {
        key = { meta.reached: exact; }
        actions = { set_child; }
        const default_action = set_child(0);
        const entries = {
            0x0000: set_child(0);
            0x0001: set_child(1);
            0x0003: set_child(2);
            0x0007: set_child(3);
            0x000F: set_child(4);
            0x001F: set_child(5);
            0x003F: set_child(6);
            0x007F: set_child(7);
            0x00FF: set_child(8);
            0x01FF: set_child(9);
            0x03FF: set_child(10);
            0x07FF: set_child(11);
            0x0FFF: set_child(12);
            0x1FFF: set_child(13);
            0x3FFF: set_child(14);
            0x7FFF: set_child(15);
        }
    }
    table set_2_ways {
        key = {
            meta.map: exact;
            meta.node: exact;
            meta.child: exact;
        }
        actions = { set_way; NoAction; }
        default_action = NoAction();
        size = 65536;
    }

    table set_3_pivots {
        key = {
            meta.map: exact;
            meta.node: exact;
        }
        actions = { compare; NoAction; }
        default_action = NoAction();
        size = 4096;
    }
    // Ones up to the last pivot that the number reaches: how many there are.
    table set_3_child {
        key = { meta.reached: exact; }
        actions = { set_child; }
        const default_action = set_child(0);
        const entries = {
            0x0000: set_child(0);
            0x0001: set_child(1);
            0x0003: set_child(2);
            0x0007: set_child(3);
            0x000F: set_child(4);
            0x001F: set_child(5);
            0x003F: set_child(6);
            0x007F: set_child(7);
            0x00FF: set_child(8);
            0x01FF: set_child(9);
            0x03FF: set_child(10);
            0x07FF: set_child(11);
            0x0FFF: set_child(12);
            0x1FFF: set_child(13);
            0x3FFF: set_child(14);
            0x7FFF: set_child(15);
        }
    }
    table set_3_ways {
        key = {
            meta.map: exact;
            meta.node: exact;
            meta.child: exact;
        }
        actions = { set_way; NoAction; }
        default_action = NoAction();
        size = 65536;
    }

    action fold_sum() {
        meta.sum = (bit<32>) meta.sum[15:0] + (bit<32>) meta.sum[31:16];
        meta.sum = (bit<32>) meta.sum[15:0] + (bit<32>) meta.sum[31:16];
    }
    action sum_shim() {
        meta.sum = (bit<32>) (hdr.shim.version_kind ++ hdr.shim.hops) + (bit<32>) hdr.shim.server
            + (bit<32>) hdr.shim.generation[31:16] + (bit<32>) hdr.shim.generation[15:0]
            + (bit<32>) hdr.shim.cursor[31:16] + (bit<32>) hdr.shim.cursor[15:0]
            + (bit<32>) hdr.shim.port + (bit<32>) hdr.shim.checksum;
        fold_sum();
    }
    // Where the walk goes on.
    action write_shim() {
        hdr.shim.setValid();
        hdr.shim.version_kind = SHIM_VERSION_KIND;
        hdr.shim.hops = meta.hops_behind;
        hdr.shim.server = 0;
        hdr.shim.generation = meta.generation_here;
        hdr.shim.cursor = meta.node;
        hdr.shim.port = ROCE_PORT;
        hdr.shim.checksum = 0;
        sum_shim();
        hdr.shim.checksum = ~meta.sum[15:0];
    }
    // UDP's checksum holds with a shim and without: its length counts twice, and the ports differ
    // by as much.
    action lengthen_udp() {
        hdr.udp.destination_port = SHIM_PORT;
        hdr.udp.bytes = CARRIED_BYTES;
    }
    action shorten_udp() {
        hdr.shim.setInvalid();
        hdr.udp.destination_port = ROCE_PORT;
        hdr.udp.bytes = DATAGRAM_BYTES;
    }
    // IPv4's checksum follows by the difference.
    action lengthen_ipv4(bit<16> by) {
        meta.sum = (bit<32>) ~hdr.ipv4.checksum + (bit<32>) ~hdr.ipv4.total_bytes;
        hdr.ipv4.total_bytes = hdr.ipv4.total_bytes + by;
        meta.sum = meta.sum + (bit<32>) hdr.ipv4.total_bytes;
        fold_sum();
        hdr.ipv4.checksum = ~meta.sum[15:0];
    }
    action lengthen_ipv6(bit<16> by) {
        hdr.ipv6.payload_bytes = hdr.ipv6.payload_bytes + by;
    }

    // What the ICRC becomes: CRC-32 is linear but for constants, which cancel out. The length, four
    // bytes that stay, lies between these fields and the end.
    action redirect() {
        hash(meta.icrc_old, HashAlgorithm.crc32, 32w0,
             { hdr.reth.address, hdr.reth.rkey, 32w0 }, 64w0x100000000);
        hash(meta.icrc_new, HashAlgorithm.crc32, 32w0,
             { meta.address, meta.redirect_key, 32w0 }, 64w0x100000000);
    }
    // The sum of 16-bit words that leave a UDP checksum, as complements, and of those that come.
    action sum_before() {
        meta.sum = (bit<32>) ~hdr.udp.checksum
            + (bit<32>) ~hdr.reth.address[63:48] + (bit<32>) ~hdr.reth.address[47:32]
            + (bit<32>) ~hdr.reth.address[31:16] + (bit<32>) ~hdr.reth.address[15:0]
            + (bit<32>) ~hdr.reth.rkey[31:16] + (bit<32>) ~hdr.reth.rkey[15:0]
            + (bit<32>) ~(hdr.icrc.byte_0 ++ hdr.icrc.byte_1)
            + (bit<32>) ~(hdr.icrc.byte_2 ++ hdr.icrc.byte_3);
    }
    action write() {
        bit<32> change = meta.icrc_old ^ meta.icrc_new;
        hdr.icrc.byte_0 = hdr.icrc.byte_0 ^ change[7:0];
        hdr.icrc.byte_1 = hdr.icrc.byte_1 ^ change[15:8];
        hdr.icrc.byte_2 = hdr.icrc.byte_2 ^ change[23:16];
        hdr.icrc.byte_3 = hdr.icrc.byte_3 ^ change[31:24];
        hdr.reth.address = meta.address;
        hdr.reth.rkey = meta.redirect_key;
    }
    action sum_after() {
        meta.sum = meta.sum
            + (bit<32>) hdr.reth.address[63:48] + (bit<32>) hdr.reth.address[47:32]
            + (bit<32>) hdr.reth.address[31:16] + (bit<32>) hdr.reth.address[15:0]
            + (bit<32>) hdr.reth.rkey[31:16] + (bit<32>) hdr.reth.rkey[15:0]
            + (bit<32>) (hdr.icrc.byte_0 ++ hdr.icrc.byte_1)
            + (bit<32>) (hdr.icrc.byte_2 ++ hdr.icrc.byte_3);
        fold_sum();
        // 0 says that there is none.
        hdr.udp.checksum = meta.sum[15:0] == 0xFFFF ? 16w0xFFFF : ~meta.sum[15:0];
    }

    apply {
        ports.apply();
        bit<1> restores = 0; // the shim is taken out
        if (meta.to_node == 1 && hdr.udp.isValid() && hdr.udp.destination_port == SHIM_PORT) {
            bit<1> is_whole = 0;
            if (meta.first == 0 && hdr.shim.isValid() && hdr.icrc.isValid()) {
                sum_shim();
                if (hdr.shim.version_kind == SHIM_VERSION_KIND && hdr.shim.port == ROCE_PORT
                    && meta.sum == 0xFFFF) {
                    is_whole = 1;
                }
            }
            if (is_whole == 0) {
                if (meta.first == 1 || meta.last == 1) {
                    drop();
                }
            } else {
                // What is of no tables here goes on; at last as its client sent it.
                restores = meta.last;
                if (parts.apply().hit && hdr.shim.cursor < meta.nodes) {
                    meta.number = hdr.reth.address;
                    meta.node = hdr.shim.cursor;
                    meta.has_node = 1;
                }
            }
        } else if (meta.to_node == 1 && hdr.icrc.isValid() && maps.apply().hit) {
            meta.number = hdr.reth.address;
            if (!fat_root_1.apply().hit) {
                meta.leads = 0;
            }
            if (meta.leads == 1 && !fat_root_2.apply().hit) {
                meta.leads = 0;
            }
            if (meta.leads == 1 && !fat_root_3.apply().hit) {
                meta.leads = 0;
            }
            if (meta.leads == 1) {
                fat_root_4.apply();
            }
            // A range without a way: its tables are not there whole, and the READ passes.
            fat_root_ways.apply();
        }
        if (meta.has_node == 1) {
            meta.has_node = 0;
            if (set_1_pivots.apply().hit) {
                set_1_child.apply();
                set_1_ways.apply();
            }
        }
        if (meta.has_node == 1) {
            meta.has_node = 0;
            if (set_2_pivots.apply().hit) {
                set_2_child.apply();
                set_2_ways.apply();
            }
        }
        if (meta.has_node == 1) {
            meta.has_node = 0;
            if (set_3_pivots.apply().hit) {
                set_3_child.apply();
                set_3_ways.apply();
            }
        }
        // The next switch knows better, or what was found is written here.
        bit<1> redirects = meta.found;
        if (meta.found == 1 && meta.beyond == 1 && meta.last == 0 && meta.hops_behind != 0) {
            redirects = 0;
            if (!hdr.shim.isValid()) {
                lengthen_udp();
                if (hdr.ipv4.isValid()) {
                    lengthen_ipv4(SHIM_BYTES);
                } else {
                    lengthen_ipv6(SHIM_BYTES);
                }
            }
            write_shim();
        }
        if (hdr.shim.isValid() && (redirects == 1 || (restores == 1 && meta.found == 0))) {
            shorten_udp();
            if (hdr.ipv4.isValid()) {
                lengthen_ipv4(-SHIM_BYTES);
            } else {
                lengthen_ipv6(-SHIM_BYTES);
            }
        }
        if (redirects == 1) {
            redirect();
            bit<1> has_checksum = hdr.udp.checksum != 0 ? 1w1 : 1w0;
            sum_before();
            write();
            if (has_checksum == 1) {
                sum_after();
            }
        }
    }
}

control no_egress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard) {
    apply { }
}

control no_update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control index_deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.outer_vlan);
        packet.emit(hdr.inner_vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.shim);
        packet.emit(hdr.bth);
        packet.emit(hdr.reth);
        packet.emit(hdr.icrc);
    }
}

V1Switch(index_parser(), no_verification(), index_ingress(), no_egress(), no_update(),
         index_deparser()) main;
