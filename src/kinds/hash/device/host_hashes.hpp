// SPDX-License-Identifier: Apache-2.0
// The hash maps of one link's host, as a worker of a device reads them: opened at the host when a
// get first names them, read by the queue pair that all kinds of the link share, each with a lease.
// Buckets and records are cached with LRU replacement: a fresh READ of the bin names the record,
// and a READ of that record's header validates the cached copy.
//
// Invariant: nothing is read after the host has refused to renew one of the leases. They all belong
// to one session, which ends with the first of them.
//
// Thread: that of the worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "channel/device/host_asker.hpp"
#include "channel/device/host_part.hpp"
#include "engine/node_parts.hpp"
#include "espalier/types.hpp"
#include "kinds/hash/calls.hpp"

namespace espalier::place {
class BinCache;
class DirectoryBudget;
class RecordCache;
}  // namespace espalier::place

namespace espalier::device {

struct HostOptions;

/// A get that the device serves by itself, until its request has taken the result.
class DeviceHashGet final : public Handler {
 public:
  explicit DeviceHashGet(std::string_view key) : key_(key) {
    request_.op = Op::get;
    request_.key = key_;
  }
  DeviceHashGet(const DeviceHashGet&) = delete;
  DeviceHashGet& operator=(const DeviceHashGet&) = delete;

  void done(const Completion& completion) override;
  [[nodiscard]] const Request& request() const { return request_; }
  [[nodiscard]] bool is_over() const { return over_; }
  /// Whether it is answered; else the host must execute it. Requires: it is over.
  [[nodiscard]] bool is_answered() const { return answered_; }
  /// Whether it found its map dropped. Requires: it is over.
  [[nodiscard]] bool met_dropped_map() const { return dropped_; }
  /// Requires: it is answered. Points into this.
  [[nodiscard]] hash_calls::ItemFound found() const;
  /// Ends it without an answer.
  void give_up() { over_ = true; }

 private:
  const std::string key_;
  Request request_;
  bool over_ = false;
  bool answered_ = false;
  bool dropped_ = false;
  bool found_ = false;
  std::uint64_t version_ = 0;
  std::uint64_t read_version_ = 0;
  std::string value_;
};

class HostHashes final : public HostPart {
 public:
  explicit HostHashes(std::uint64_t cache_bytes);
  ~HostHashes() override;

  /// Whether gets of this map can be served here, as far as is known.
  [[nodiscard]] bool reads(std::uint32_t number) const;
  /// Begins a get, which a later turn completes. Requires: reads() of the map. Errors:
  /// std::bad_alloc, and the caller has no get to wait for.
  [[nodiscard]] std::shared_ptr<DeviceHashGet> begin(std::uint32_t number, std::string_view key);

  void ask_by(HostAsker* asker) override { asker_ = asker; }
  void read_by(std::shared_ptr<HostReads> reads) override;
  void stop_reading() override;
  void turn(std::uint64_t now_ns) override;
  [[nodiscard]] bool has_leases() const override { return !maps_.empty(); }
  void count() override {}

 private:
  struct OpenedHash;
  void open(std::uint32_t number, const std::shared_ptr<OpenedHash>& map);
  void take_opening(OpenedHash& map, std::uint32_t number, std::uint64_t asked_ns,
                    const Result<hash_calls::ReadsOpened>& opened);
  void begin_reading(OpenedHash& map, std::uint32_t number, std::uint64_t asked_ns,
                     const hash_calls::ReadsOpened& opened);
  static void submit_waiting(OpenedHash& map);
  void keep_lease(const std::shared_ptr<OpenedHash>& map);
  void let_go_of_dropped();
  static void refuse(OpenedHash& map);

  const std::uint64_t cache_bytes_;
  std::uint64_t now_ns_ = 0;                                   // of this turn
  HostAsker* asker_ = nullptr;                                 // null: the host is gone
  std::shared_ptr<HostReads> reads_;                           // null: nothing can be read
  std::unique_ptr<place::BinCache> cache_;                     // of what is read by these
  std::unique_ptr<place::RecordCache> records_;                // likewise
  const std::unique_ptr<place::DirectoryBudget> directories_;  // likewise
  std::unordered_map<std::uint32_t, std::shared_ptr<OpenedHash>> maps_;
};

/// The HostHashes of a device's schedulers. Made before these. Thread: any.
struct NodeHostHashes final : offload::NodePart {
  std::vector<HostHashes*> of_scheduler;  ///< by shard; they outlive the schedulers
};

/// Makes the HostHashes of the next scheduler.
[[nodiscard]] std::unique_ptr<HostPart> hashes_of_host(
    offload::TypedSlots<offload::NodePart>& parts, const HostOptions& options);

}  // namespace espalier::device
