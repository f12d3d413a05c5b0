// SPDX-License-Identifier: Apache-2.0
// A map as the requests of one scheduler reach it. Where its walks run is the place's own matter:
// offloads that read know only this, so that the host serves them, and another place can.
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
  /// where a read may enter, which comes from a client; none: at the root.
  virtual void submit(const espalier::Request& walk, Handler& handler, wire::Ref hint) = 0;
  /// Queues a walk with what goes with it: a version to read, or a condition of a write.
  virtual void submit(const tree::WalkRequest& walk) = 0;
  /// One turn of what is in flight: never waits. Returns how many walks are left.
  virtual std::size_t advance() = 0;
  [[nodiscard]] virtual bool keeps_versions() const = 0;
  /// Holds the version that a walk has read, within that walk's completion. Null: the map keeps no
  /// versions.
  [[nodiscard]] virtual std::shared_ptr<HeldSnapshot> hold(std::uint64_t version,
                                                           const std::string& owner) = 0;
  /// Keeps what a walk has found where it is, within that walk's completion or items, until the pin
  /// goes. None: not here; what was found is to be copied at once.
  [[nodiscard]] virtual base::EpochPin pin();
  /// A buffer for a value that is to be written, into which it can be copied before. Nothing: not
  /// here, or there is no memory for it now. The map stays as long as that lives.
  [[nodiscard]] virtual std::optional<memory::StagedBytes> stage(std::string_view value);
  /// Whether it lost its name: no request that begins may find it.
  [[nodiscard]] virtual bool dropped() const = 0;
  /// The newest version that readers see.
  [[nodiscard]] virtual std::uint64_t released() const = 0;
  [[nodiscard]] bool is_released(std::uint64_t version) const final {
    return released() >= version;
  }
  /// Whether later ones will never be released.
  [[nodiscard]] virtual bool failed() const { return false; }
  /// Whether a write may be begun: not too many wait for their release. Is asked where they are
  /// recorded, for then that takes long.
  [[nodiscard]] virtual bool may_write() const { return true; }
  /// Where it is recorded, answers of writes are given before they may be told. Of the one that is
  /// being given: the version that it waits for; 0: none. Once.
  [[nodiscard]] virtual std::uint64_t take_unreleased() { return 0; }
  /// An answer was given from the leaf of this key, and so were many that this is not told of.
  virtual void count_answer(std::string_view /*key*/, std::uint64_t /*now_ns*/) {}
  /// What frees the map when it is the last to hold it, which takes time by the map's size.
  [[nodiscard]] virtual std::shared_ptr<void> keep() const = 0;

  /// Of a shard: which keys it has. Null: all of them.
  const wire::ShardMap* shard = nullptr;
  bool walking = false;   ///< has walks in flight
  bool recorded = false;  ///< its effects are

 protected:
  ServedMap() = default;
};

}  // namespace espalier::offload
