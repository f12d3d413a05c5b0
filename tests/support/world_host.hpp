// SPDX-License-Identifier: Apache-2.0
// The host of one_sided_world.hpp: a node with a store, which writes a map, frees memory as early
// as allowed, drops maps and makes others in their memory, and answers for leases. It crashes, and
// another one without its state takes its name.
//
// The host knows each client by its session: a registration of the store's region in a domain of
// its own, and a lease. It sweeps leases, and fences a session before it ends its lease.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/lease_table.hpp"
#include "fabric/sim/testing/two_ends.hpp"
#include "kinds/map/format/mapping_feed.hpp"
#include "kinds/map/offload/index_host.hpp"
#include "kinds/map/write/map_object.hpp"
#include "tests/support/history.hpp"
#include "tests/support/one_sided_world.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/walk_recorder.hpp"
#include "wire/message.hpp"

namespace espalier::test {

/// The node's name in the world, and the address at which it listens.
inline constexpr const char* kHostName = "host";

// In the world's time, where a message takes some microseconds.
inline constexpr base::LeaseTerms kWorldTerms{
    .renew_every_ns = 100'000, .believed_for_ns = 1'000'000, .lost_after_ns = 2'000'000};

/// A map, present or dropped, with all requests on it and their answers.
struct MapRecord {
  std::string name;
  std::uint64_t dropped = 0;  // when, by the clock of the history; 0: never
  History history;
};
using MapRecords = std::deque<MapRecord>;

/// Takes the history of a map. Returns what is wrong; empty: nothing.
[[nodiscard]] std::string take_log(WalkRecorder& recorder, MapRecord& record,
                                   const OneSidedOptions& options, OneSidedCounts& counts);

/// A device's request to the host, and the host's answer.
struct DeviceQuestion {
  wire::OffloadId offload = wire::OffloadId::invalid;
  std::uint32_t map = 0;
  std::uint32_t argument = 0;
  std::string key;
  std::string payload;
};
struct DeviceAnswer {
  wire::ResponseHeader header{};
  std::string payload;
};

/// The host in one of its lives.
class WorldHost {
 public:
  /// `life`: its node id. Requires: all of these outlive it.
  WorldHost(fabric::sim::World& world, std::unique_ptr<fabric::Endpoint> endpoint,
            std::uint32_t life, std::uint64_t seed, const OneSidedOptions& options, Clock& clock,
            MapRecords& records, OneSidedCounts& counts);
  ~WorldHost();

  /// A client's part of its session.
  struct Session {
    fabric::Registration region;
    std::vector<base::LeaseId> leases;
  };
  /// The host's answer about the present map.
  struct Opening {
    std::uint32_t life = 0;
    std::size_t map = 0;  // which of the records
    tree::MapView view;
    wire::FeedPlace feed{};                          // where clients follow it
    std::shared_ptr<offload::IndexedMap> indexed{};  // how they READ it by key; null: not
  };
  /// How a client names the session that it connects for.
  struct Hello {
    std::uint32_t life = 0;
    std::uint32_t domain = 0;
  };

  /// Called at moments in the middle of writes, if there are any; may be empty.
  std::function<void()> meanwhile;

  /// Writes something; or drops the map and makes the next one, if requested.
  void write();
  void want_drop() { drop_wanted_ = true; }
  /// Fences sessions whose leases have expired, then ends their leases.
  void sweep();
  /// Accepts connections that name a session of this life, and rejects others.
  void accept();
  /// A new session for a client; its pairs are of this domain.
  std::uint32_t open_session();
  [[nodiscard]] Session& session(std::uint32_t domain) { return sessions_[domain - 1]; }
  [[nodiscard]] Opening opening() const;
  /// Lets a session READ a map by key.
  void admit(std::uint32_t domain, offload::IndexedMap& map);
  /// Answers a device as a node does, immediately: about maps to be read, their feeds and leases,
  /// and gets and floors; all else is `contended`.
  [[nodiscard]] DeviceAnswer answer_device(std::uint32_t domain, const DeviceQuestion& question);
  /// Whether a session still holds a lease.
  [[nodiscard]] bool holds_lease(std::uint32_t domain) const;
  /// Frees what may be freed. Returns what is held back all the same; empty: nothing.
  [[nodiscard]] std::string reclaim();
  /// For READs by key, if there are such.
  [[nodiscard]] offload::IndexHost& index() { return *index_; }
  [[nodiscard]] const std::shared_ptr<offload::IndexedMap>& indexed() const { return indexed_; }

  /// From here on it does nothing more by itself.
  void die();
  [[nodiscard]] bool dead() const { return died_ns_ != 0; }
  [[nodiscard]] std::uint64_t died_ns() const { return died_ns_; }
  [[nodiscard]] std::uint32_t life() const { return life_; }
  [[nodiscard]] tree::StoreCore& store() { return store_; }
  [[nodiscard]] const tree::MapCore& map() const { return *map_; }
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }
  /// What is wrong so far; takes the rest of what was recorded.
  [[nodiscard]] std::string wrong();

 private:
  void make_map();
  void drop_map();
  Question next_write();
  void lie();
  void overrun_feed();
  void offer_region(std::uint32_t domain);
  DeviceAnswer offer_map(std::uint32_t domain, const DeviceQuestion& question);
  DeviceAnswer tell_feed() const;
  DeviceAnswer renew_lease(const DeviceQuestion& question);
  DeviceAnswer read_for_device(const DeviceQuestion& question);

  fabric::sim::World& world_;
  std::unique_ptr<fabric::Endpoint> endpoint_;
  std::uint32_t life_;
  Random random_;
  const OneSidedOptions options_;
  Clock& clock_;
  MapRecords& records_;
  OneSidedCounts& counts_;
  std::vector<std::string> keys_;
  std::string wrong_;
  bool drop_wanted_ = false;
  bool writing_ = false;  // others run in the middle of writes
  std::uint64_t died_ns_ = 0;
  std::uint64_t written_ = 0;

  tree::StoreCore store_;
  offload::IndexReadCounts index_reads_;
  std::unique_ptr<offload::IndexHost> index_;
  std::shared_ptr<offload::IndexedMap> indexed_;  // the present map
  std::shared_ptr<tree::MapCore> map_;
  wire::FeedPlace feed_{};
  std::size_t record_ = 0;              // of the map
  std::vector<std::uint64_t> headers_;  // where maps had theirs
  std::unique_ptr<HostWalker> writer_;
  std::deque<Session> sessions_;
  std::vector<std::unique_ptr<fabric::sim::End>> ends_;
};

}  // namespace espalier::test
