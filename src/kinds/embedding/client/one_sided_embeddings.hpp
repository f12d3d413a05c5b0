// SPDX-License-Identifier: Apache-2.0
// The embedding tables that one thread reads by one-sided READs: one connection for READs, which
// all tables share, and for each table a reader, with a lease. Requests to the node use a lane of
// their own: a session has one pair for READs, so the pair for maps belongs to another session.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "channel/one_sided/leased_readers.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "channel/rings/side_link.hpp"
#include "kinds/embedding/remote/bag_reader.hpp"

namespace espalier::client {

class OneSidedEmbeddings final : public LanePart {
 public:
  OneSidedEmbeddings() = default;
  ~OneSidedEmbeddings();
  OneSidedEmbeddings(const OneSidedEmbeddings&) = delete;
  OneSidedEmbeddings& operator=(const OneSidedEmbeddings&) = delete;

  /// Reduces bags of a table that `node` numbered, and that has its name by one of so many renames.
  /// Nothing: the rings must do it, because READs are not possible, the lease was lost, the table
  /// is gone, or its rows were replaced too often. A failure to open is not retried for a while.
  /// Errors: invalid_argument (an id is no row's). Requires: as BagReader::reduce.
  std::optional<TableResult<void>> reduce(RemoteSessions& sessions, channel::NodeNumber node,
                                          std::uint32_t table, std::uint32_t renames,
                                          const EmbeddingOptions& options,
                                          const embedding::ReductionWork& work,
                                          std::span<float> results);
  /// READs waited for, and bytes received; and reductions that went by the rings.
  [[nodiscard]] tree::WalkTraffic traffic() const;

 private:
  using Readers = std::unordered_map<std::uint32_t, std::unique_ptr<place::BagReader>>;

  place::BagReader* open(std::uint32_t table, const EmbeddingOptions& options);
  Result<place::BagReader*> open_anew(std::uint32_t table, const EmbeddingOptions& options);
  TableResult<void> reduce_by(place::BagReader& reader, const embedding::ReductionWork& work,
                              std::span<float> results);
  bool keep_waiting(place::BagReader& reader);
  void close();

  LeaseLane lane_;
  // Readers are destroyed before the port that they read by, and that before the link.
  std::unique_ptr<SideLink> link_;
  std::optional<place::ReadPort> port_;
  Readers readers_;
  OpenFailures failures_;
  std::uint32_t quiet_ = 0;  // polls since READs were last posted
  std::uint64_t trips_ = 0;
  std::uint64_t by_rings_ = 0;
  tree::WalkTraffic ended_;  // of closed ports
};

}  // namespace espalier::client
