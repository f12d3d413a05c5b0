// SPDX-License-Identifier: Apache-2.0
// Of which chain a data folder is, and which member of it: DIR/chain, one line of words
// (docs/formats/chains.md). A folder stays that of one number, so what is said of the number is
// true of the folder, whoever starts with it.
//
// Thread: one; the node has the folder for itself.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "chain/view.hpp"

namespace espalier::node {

struct ChainFolder {
  std::uint64_t chain = 0;
  std::uint32_t member = 0;
  /// It joins, and what is in the folder does not count yet.
  bool begins = false;
  friend bool operator==(const ChainFolder&, const ChainFolder&) = default;
};

/// What a folder says; nothing: it is of no chain. Errors: a sentence.
[[nodiscard]] std::expected<std::optional<ChainFolder>, std::string> read_chain_folder(
    const std::string& dir);
/// What a folder that begins said before it was claimed for another number, while its log is what
/// it was then; nothing: nothing. Errors: a sentence.
[[nodiscard]] std::expected<std::optional<ChainFolder>, std::string> read_chain_folder_before(
    const std::string& dir);
/// Keeps what a folder says that is a member's, until forget_chain_folder_before(). Errors: a
/// sentence.
[[nodiscard]] std::expected<void, std::string> keep_chain_folder_before(const std::string& dir,
                                                                        const ChainFolder& folder);
[[nodiscard]] std::expected<void, std::string> forget_chain_folder_before(const std::string& dir);
/// Says so from now on, durably. Errors: a sentence.
[[nodiscard]] std::expected<void, std::string> write_chain_folder(const std::string& dir,
                                                                  const ChainFolder& folder);

/// Whether a member may start with a folder whose log has records up to `held`: one of its chain
/// and number, from its first record on; or, in a view that is not whole yet, a new one, which is
/// its own from now on, and that of the head may have been a node's of its own before. Whoever is
/// in a later view has had a folder from the beginning. Errors: a sentence.
[[nodiscard]] std::expected<void, std::string> claim_chain_folder(const std::string& dir,
                                                                  const chain::View& view,
                                                                  std::uint32_t self,
                                                                  std::uint64_t held);

}  // namespace espalier::node
