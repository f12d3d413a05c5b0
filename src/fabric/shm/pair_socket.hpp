// SPDX-License-Identifier: Apache-2.0
// The socket of one connection, and the state that the endpoint's two threads share about it: the
// service thread reads packets, the endpoint's own thread takes the results.
//
// Thread: as each member says.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/shm/mapping_cache.hpp"
#include "fabric/shm/piece_rings.hpp"
#include "fabric/types.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::shm {

/// What the peer answered to a request for a connection.
struct Welcomed {
  bool refused = false;
  std::vector<std::byte> data;
  PieceRings channel;
  memory::SharedMemory words;  // the peer's good keys
};

/// What the peer answered to a question for a region's memory.
struct Mapped {
  Status status = Status::success;  // else there is no memory
  bool is_void = false;             // nor is there then: READs of what the window says bring zeros
  Window window;                    // but for `word`
  memory::SharedMemory memory;
};

struct PairSocket {
  enum class Phase : std::uint8_t {
    greeting,   // the peer has connected, and has not sent its hello
    knocking,   // the hello has come; the request waits to be accepted
    expecting,  // this side has sent its hello
    open,
  };
  PairSocket(memory::Descriptor at, Phase begins) : socket(std::move(at)), phase(begins) {}

  const memory::Descriptor socket;
  std::atomic<Phase> phase;
  /// The socket was closed, or the peer violates the protocol.
  std::atomic<bool> lost{false};
  /// The key that was asked for; 0: none. Any other answer violates the protocol.
  std::atomic<RegionKey> asked{0};
  /// The domain of the peer's pair. Set before the phase becomes `open`, or `expecting`.
  Domain domain = 0;

  // Of an accepted socket; the service's until `knocking`, then the accepting thread's.
  std::uint64_t until_ns = 0;  // deadline of the hello
  std::string peer;
  std::vector<std::byte> data;
  memory::SharedMemory words;

  [[nodiscard]] std::optional<Welcomed> take_welcome() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(welcome_, std::nullopt);
  }
  [[nodiscard]] std::optional<Mapped> take_answer() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(answer_, std::nullopt);
  }
  void put(Welcomed welcome) {
    const std::scoped_lock lock(mutex_);
    welcome_ = std::move(welcome);
  }
  void put(Mapped answer) {
    const std::scoped_lock lock(mutex_);
    answer_ = std::move(answer);
  }

 private:
  std::mutex mutex_;
  std::optional<Welcomed> welcome_;
  std::optional<Mapped> answer_;
};

}  // namespace espalier::fabric::shm
