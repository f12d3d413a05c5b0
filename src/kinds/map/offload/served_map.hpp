// SPDX-License-Identifier: Apache-2.0
// A map as the requests of one scheduler use it, independent of where its walks run: offloads that
// read know only this interface, so that the host or a device can serve them.
//
// Thread: that of the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/executor.hpp"
#include "espalier/types.hpp"
#include "wire/ref.hpp"

namespace espalier::base {
class EpochPin;
}
namespace espalier::memory {
class StagedBytes;
}
namespace espalier::tree {
struct WalkRequest;
}
namespace espalier::wire {
struct ShardMap;
}

namespace espalier::offload {

class HeldSnapshot;

class ServedMap : public WorkedOn {
 public:
  ServedMap(const ServedMap&) = delete;
  ServedMap& operator=(const ServedMap&) = delete;

  /// Queues a walk of the newest state; what it points to must live until its completion. `hint`:
  /// an untrusted node at which a read may enter; none: the root.
  virtual void submit(const espalier::Request& walk, Handler& handler, wire::Ref hint) = 0;
  /// Queues a walk with its context: a version to read, or a condition of a write.
  virtual void submit(const tree::WalkRequest& walk) = 0;
  /// Advances walks in flight by one turn, without waiting. Returns the number of pending walks.
  virtual std::size_t advance() = 0;
  [[nodiscard]] virtual bool keeps_versions() const = 0;
  /// Holds the version that a walk has read; call within that walk's completion. Null: the map
  /// keeps no versions.
  [[nodiscard]] virtual std::shared_ptr<HeldSnapshot> hold(std::uint64_t version,
                                                           const std::string& owner) = 0;
  /// Pins what a walk has found, until the pin is released; call within that walk's completion or
  /// items. None: not supported here; copy the result immediately.
  [[nodiscard]] virtual base::EpochPin pin();
  /// A buffer into which a value can be copied before it is written. Nothing: not supported here,
  /// or out of memory. The buffer keeps the map alive.
  [[nodiscard]] virtual std::optional<memory::StagedBytes> stage(std::string_view value);
  /// Whether it was dropped: new requests must not find it.
  [[nodiscard]] virtual bool dropped() const = 0;
  /// The newest released version.
  [[nodiscard]] virtual std::uint64_t released() const = 0;
  [[nodiscard]] bool is_released(std::uint64_t version) const final {
    return released() >= version;
  }
  /// Whether later versions will never be released.
  [[nodiscard]] virtual bool failed() const { return false; }
  /// Whether a write may begin: not too many wait for their release. Called for recorded maps,
  /// where releases take long.
  [[nodiscard]] virtual bool may_write() const { return true; }
  /// Recorded maps complete writes before their version is released. Returns the version that the
  /// completing write waits for, once; 0: none.
  [[nodiscard]] virtual std::uint64_t take_unreleased() { return 0; }
  /// Counts an answer from the leaf of this key; called for a sample of answers.
  virtual void count_answer(std::string_view /*key*/, std::uint64_t /*now_ns*/) {}
  /// A reference that frees the map if it is the last, which takes time by the map's size.
  [[nodiscard]] virtual std::shared_ptr<void> keep() const = 0;

  /// Of a shard: which keys it has. Null: all.
  const wire::ShardMap* shard = nullptr;
  bool walking = false;   ///< has walks in flight
  bool recorded = false;  ///< its writes are recorded

 protected:
  ServedMap() = default;
};

}  // namespace espalier::offload
