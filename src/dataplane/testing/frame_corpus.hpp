// SPDX-License-Identifier: Apache-2.0
// For tests: frames that whatever is a switch must treat alike, to the byte. Files of them lie in
// src/dataplane/frames, for other switches too (docs/formats/index_tables.md); this makes them.
//
// Checksums are worked out here from their definitions, so that a right one that comes out of a
// switch does not rest on the code that mended it.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/switch_program.hpp"
#include "fabric/roce/testing/capture.hpp"

namespace espalier::dataplane {

struct CorpusFile {
  std::string name;
  fabric::roce::CapturedFrames frames;
  bool whole = true;  ///< all are datagrams of RoCEv2 whose checksums are right
  bool plain =
      true;  ///< and all headers are as ports of one process make them (process_switch.hpp)
};

/// What a switch runs with when these frames come: two maps.
[[nodiscard]] SwitchProgram corpus_program();

/// As they come to a switch:
///   opcodes    every opcode, over IPv4 and IPv6, with a checksum of UDP and without
///   keys       READs of keys at which lookups change, and READs by other keys
///   headers    tags, options, lengths, fields that do not matter, checksums of all ones
///   damaged    READs with wrong checksums: they stay wrong
///   malformed  cut, of other protocols, lengths that disagree
[[nodiscard]] std::vector<CorpusFile> corpus_files();

/// Where the IP header begins, behind whatever tags there are.
[[nodiscard]] std::size_t ip_offset(std::span<const std::byte> frame);
/// Where the UDP header begins. Requires: IP directly before it.
[[nodiscard]] std::size_t udp_offset(std::span<const std::byte> frame);
/// Gives a frame of RoCEv2 its checksums: IPv4's, the ICRC, and where `checksum` says so that of
/// UDP, else 0. Requires: IP directly before UDP, lengths that are right, and nothing behind.
void seal_by_definition(std::span<std::byte> frame, bool checksum);
/// The same, but for the ICRC, which stays as it is.
void seal_headers_by_definition(std::span<std::byte> frame, bool checksum);

}  // namespace espalier::dataplane
