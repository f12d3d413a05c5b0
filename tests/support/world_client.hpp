// SPDX-License-Identifier: Apache-2.0
// A client of one_sided_world.hpp: walks a map by READs, renews its lease, and reconnects when its
// session, the map or the node is gone.
//
// It checks each answer against the one guarantee that no history shows: when the answer is
// returned, the host has answered a renewal at most believed_for_ns ago, by the host's own time.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/sim/testing/two_ends.hpp"
#include "kinds/map/remote/one_sided_reader.hpp"
#include "tests/support/hints.hpp"
#include "tests/support/world_host.hpp"

namespace espalier::test {

/// The present host: what a client reaches by its address.
using HostOfNow = std::unique_ptr<WorldHost>;

class WorldClient {
 public:
  /// `hosts`: all lives of the host so far; the last one is the present. All must outlive this.
  WorldClient(fabric::sim::World& world, std::deque<HostOfNow>& hosts, std::uint32_t number,
              std::uint64_t seed, const OneSidedOptions& options, Clock& clock, MapRecords& records,
              OneSidedCounts& counts);
  ~WorldClient();

  /// One turn of the client's loop. Not reentrant, except while it sleeps.
  void turn();
  /// Whether all its requests are answered, and none will follow.
  [[nodiscard]] bool done() const { return left_ == 0 && (!reader_ || reader_->pending() == 0); }
  /// Disconnects without notice.
  void leave() { close(); }
  /// What is wrong so far; takes what was recorded.
  [[nodiscard]] std::string wrong();

 private:
  [[nodiscard]] WorldHost& host_of_now() { return *hosts_.back(); }
  wire::Ref hint_for(const std::string& key);
  void use_reader();
  void submit();
  WalkRecorder& recorder();
  void handed_out(const Error& error);
  void connect();
  void choose_map();
  void go_on_connecting();
  void open_reader();
  void forge_cache();
  void close();
  void ask_host(const place::LeaseGuard::Asked& asked);
  // A request about the lease, in flight.
  struct Asking {
    place::LeaseGuard::Asked what;
    WorldHost* host = nullptr;
    std::uint32_t domain = 0;
    std::uint64_t life = 0;  // of the reader
    std::uint64_t asked_ns = 0;
    std::uint64_t back_ns = 0;
  };
  void grant(const Asking& asking);
  void renew(const Asking& asking);
  [[nodiscard]] std::uint64_t way_ns();

  fabric::sim::World& world_;
  std::deque<HostOfNow>& hosts_;
  const std::string name_;
  const std::uint32_t number_;
  Random random_;
  const OneSidedOptions options_;
  Clock& clock_;
  MapRecords& records_;
  OneSidedCounts& counts_;
  std::uint64_t left_;
  std::string wrong_;

  std::unique_ptr<fabric::Endpoint> endpoint_;
  fabric::sim::End end_;
  WorldHost* host_ = nullptr;  // whose memory it reads
  std::uint32_t domain_ = 0;
  fabric::RemoteRegion region_;
  std::optional<WorldHost::Opening> opening_;
  std::unique_ptr<place::NodeCache> cache_;  // of one life of the host
  std::uint32_t cached_life_ = 0;            // which
  std::unique_ptr<place::OneSidedReader> reader_;
  std::uint64_t life_ = 0;                 // changes with the reader
  std::uint64_t heard_ns_ = 0;             // when the host sent the last grant or renewal
  std::optional<std::uint64_t> asked_ns_;  // when the pending request about the lease was sent
  bool map_gone_ = false;                  // an answer reported it
  std::uint32_t failures_ = 0;             // to connect, in a row
  std::uint64_t retry_ns_ = 0;             // when to try again
  std::uint64_t connecting_since_ns_ = 0;
  bool busy_ = false;

  Hints hints_;
  std::map<std::string, wire::Ref> leaves_;  // a cache that outlives maps and nodes
  std::map<std::size_t, std::unique_ptr<WalkRecorder>> recorders_;  // by map
};

}  // namespace espalier::test
