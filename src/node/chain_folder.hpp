// SPDX-License-Identifier: Apache-2.0
// The chain and the member number of a data folder: DIR/chain, one line of words
// (docs/formats/chains.md). A folder keeps its number, so statements about the number hold for the
// folder, whichever node starts with it.
//
// Thread: one; the node has exclusive use of the folder.
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
  /// It is joining, and the folder's contents do not count yet.
  bool begins = false;
  friend bool operator==(const ChainFolder&, const ChainFolder&) = default;
};

/// Reads a folder's file; nothing: it belongs to no chain. Errors: a sentence.
[[nodiscard]] std::expected<std::optional<ChainFolder>, std::string> read_chain_folder(
    const std::string& dir);
/// What the file of a beginning folder said before the folder was claimed for another number, while
/// its log is still that one's; nothing: none. Errors: a sentence.
[[nodiscard]] std::expected<std::optional<ChainFolder>, std::string> read_chain_folder_before(
    const std::string& dir);
/// Keeps a member's file until forget_chain_folder_before(). Errors: a sentence.
[[nodiscard]] std::expected<void, std::string> keep_chain_folder_before(const std::string& dir,
                                                                        const ChainFolder& folder);
[[nodiscard]] std::expected<void, std::string> forget_chain_folder_before(const std::string& dir);
/// Replaces the file, durably. Errors: a sentence.
[[nodiscard]] std::expected<void, std::string> write_chain_folder(const std::string& dir,
                                                                  const ChainFolder& folder);

/// Whether a member may start with a folder whose log has records up to `held`. The folder must
/// have its chain and number, from its first record on. In a view that is not whole yet, a new
/// folder is claimed, and the head's may have been that of a standalone node. A member of a later
/// view has had a folder from the beginning. Errors: a sentence.
[[nodiscard]] std::expected<void, std::string> claim_chain_folder(const std::string& dir,
                                                                  const chain::View& view,
                                                                  std::uint32_t self,
                                                                  std::uint64_t held);

}  // namespace espalier::node
