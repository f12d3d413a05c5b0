// SPDX-License-Identifier: Apache-2.0
// What one that joins a chain does before it starts: it has its data folder begin with the newest
// checkpoint of the tail, so that the log goes on from there (docs/design/chains.md).
//
//   1. it takes a new number in the chain       so nobody believes what is said of an earlier one
//   2. DIR/chain says that number, and begins   from now on nothing in the folder counts
//   3. DIR/fetched: the tail's file, if it has one
//   4. the log that was there and its checkpoints are removed; what was fetched is read as a whole,
//      and becomes a checkpoint of this store's own, behind which the log begins
//   5. DIR/chain says the number alone
//
// A crash at any moment has the next start begin anew, or go on with a folder that is complete.
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
  /// Asked again and again; true: it is not to start. None: it waits for as long as it takes.
  std::function<bool()> stopped{};
  /// Is told what becomes of the folder, in lines for people. None: no one is.
  std::function<void(const std::string&)> report{};
};

/// Does so where the configuration names one that joins, whose folder is not begun yet; else
/// nothing. Waits until the tail answers. Returns false: it was stopped.
/// Errors: a sentence: of the membership, of the folder, which is of another chain, of none, or of
/// a member, of the tail's checkpoint. Cost: the checkpoint travels once, is written twice and read
/// twice.
[[nodiscard]] std::expected<bool, std::string> begin_to_join(const JoiningTerms& terms);

}  // namespace espalier::node
