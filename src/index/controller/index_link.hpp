// SPDX-License-Identifier: Apache-2.0
// The connection of a switch controller to one map of a node: rings for calls, READs for the map's
// tree, and a lease, which the right to read and the key that the tables write depend on. It ends
// when the map is dropped, the lease is lost or the node is gone; then another link may be opened,
// with other keys.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "channel/rings/node_address.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/side_link.hpp"
#include "dataplane/packet_function.hpp"
#include "index/tree_crawl.hpp"
#include "kinds/map/client/one_sided_opening.hpp"
#include "kinds/map/remote/feed_cursor.hpp"
#include "reach/read_port.hpp"

namespace espalier::client {

class IndexLink final : public place::RegionSource {
 public:
  /// Errors: unsupported (READs to this address cannot carry a key, or the node does not offer its
  /// memory), not_found and wrong_kind (of the map), and those of FabricConnection::open.
  static Result<std::unique_ptr<IndexLink>> open(const NodeAddress& address, std::string_view map,
                                                 const ConnectOptions& connecting = {});

  /// The keys that clients and tables use for the map.
  [[nodiscard]] dataplane::MapKeys keys() const {
    return {opening_.keyed->key, opening_.redirect->key};
  }
  /// The prefix of keys that their numbers leave out.
  [[nodiscard]] const std::string& prefix() const { return opening_.keyed->prefix; }
  /// The first address of the map's nodes in tables.
  [[nodiscard]] std::uint64_t base() const { return opening_.redirect->base; }
  [[nodiscard]] const tree::MapView& view() const { return *view_; }

  /// Has the node write the map's mapping feed for as long as the lease is valid, and returns a
  /// cursor to it. Errors: unsupported (the node has none), and those of feed_open; corrupt.
  Result<place::FeedCursor> follow();
  /// What a feed has reported since it was read last: all of it that is there.
  struct FeedNews {
    std::vector<place::MappingChange> changes;
    bool behind = false;  // others are missing
    bool ended = false;   // there is no such feed any more
  };
  /// Errors: connection_lost.
  Result<FeedNews> read_feed(place::FeedCursor& feed);
  /// Renews the lease where it is due; to be called at least three times a second. Errors:
  /// connection_lost (the lease is lost, or the node is gone), and then it is over.
  Result<void> keep();
  /// Takes another redirect key, which keys() and base() return from now on; the previous one stays
  /// valid until the next call, or end_generations_before(). Errors: connection_lost; those of
  /// offering a key.
  Result<void> begin_generation();
  /// Revokes the keys of earlier generations. Requires: no switch has tables with them. Errors:
  /// connection_lost.
  Result<void> end_generations_before();
  /// Checks that the map still exists. Errors: not_found (it was dropped), connection_lost.
  Result<void> check_map();
  /// The node's counts of how often leaves are read. Errors: connection_lost; contended (the map is
  /// offered under another key now: open a new link).
  Result<place::LeafCounts> read_counts();
  Result<void> read(std::span<const Want> wanted) override;
  /// Sets a function to call during each read, since reading a tree takes long.
  void call_while_reading(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

 private:
  IndexLink(std::shared_ptr<NodeConnection> connection, std::unique_ptr<ThreadRings> rings,
            std::unique_ptr<SideLink> link);
  Result<void> open_map(std::string_view name);
  void await(const place::LaneReads& lane);

  const std::shared_ptr<NodeConnection> connection_;
  const std::unique_ptr<ThreadRings> rings_;
  RemoteRequests requests_;
  const std::unique_ptr<SideLink> link_;
  OneSidedOpening opening_;
  std::optional<tree::MapView> view_;
  std::optional<place::ReadPort> port_;
  std::function<void()> meanwhile_;
  std::uint64_t epoch_ = 0;       // of the last renewal
  std::uint64_t renewed_ns_ = 0;  // when that was requested
};

}  // namespace espalier::client
