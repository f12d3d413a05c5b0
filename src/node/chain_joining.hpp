// SPDX-License-Identifier: Apache-2.0
// How a node joins a chain, before it starts: its data folder begins with the tail's newest
// checkpoint, so that the log continues from there (docs/design/chains.md).
//
//   1. it gets a new number in the chain       so statements about an earlier one do not apply
//   2. DIR/chain has that number, and begins   from now on nothing in the folder counts
//   3. DIR/fetched: the tail's file, if it has one
//   4. the previous log and its checkpoints are removed; the fetched file is read completely, and
//      becomes a checkpoint of this store, after which the log begins
//   5. DIR/chain has the number alone
//
// After a crash at any point the next start begins again, or continues with a complete folder.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

#include "node/config.hpp"

namespace espalier::node {

struct JoiningTerms {
  const Config& config;
  std::uint64_t segment_bytes = 0;  ///< of the log
  /// Polled; true: do not start. None: waits as long as necessary.
  std::function<bool()> stopped{};
  /// Receives progress on the folder, in lines for people. None: not reported.
  std::function<void(const std::string&)> report{};
};

/// Joins if the configuration names a joining member whose folder is not begun yet; else does
/// nothing. Waits until the tail answers. Returns false: it was stopped.
/// Errors: a sentence: of the membership; of the folder, which belongs to another chain, to none,
/// or to a member; of the tail's checkpoint. Cost: the checkpoint travels once, is written twice
/// and read twice.
/// twice.
[[nodiscard]] std::expected<bool, std::string> begin_to_join(const JoiningTerms& terms);

}  // namespace espalier::node
