// SPDX-License-Identifier: Apache-2.0
// A processor's cache that loses its contents: which bytes of a region of persistent memory are
// durable, by the observed stores of WRITEs (placed_write.hpp).
//
//   stored past the cache  ->  waits for a fence  ->  durable
//   stored through it      ->  durable by chance: a cache evicts lines when it likes
//
// Only for tests that link the variant with planted bugs.
//
// Thread: one, which plays all sides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fabric/placed_write.hpp"
#include "fabric/testing/fabric_fixture.hpp"

namespace espalier::fabric {

#if defined(ESPALIER_PLANTED_BUGS)

class LossyCache final : public StoreObserver {
 public:
  /// The first store from elsewhere than `memory` goes to its beginning, by another mapping.
  LossyCache(std::span<const std::byte> memory, std::uint64_t seed)
      : memory_(memory), durable_(memory.begin(), memory.end()), random_(seed) {
    store_observer = this;
  }
  LossyCache(const LossyCache&) = delete;
  LossyCache& operator=(const LossyCache&) = delete;
  ~LossyCache() override { store_observer = nullptr; }

  void stored(const std::byte* at, std::size_t bytes, bool past_cache) override {
    const bool is_own = at >= memory_.data() && at < memory_.data() + memory_.size();
    if (!is_own && !other_mapping_) other_mapping_ = at;
    const std::byte* const base = is_own ? memory_.data() : *other_mapping_;
    const Part part{static_cast<std::size_t>(at - base), bytes};
    if (past_cache) {
      unfenced_.push_back(part);
    } else if (random_.chance(kEvicted)) {
      make_durable(part);
    }
  }
  void fenced() override {
    for (const Part& part : unfenced_) make_durable(part);
    unfenced_.clear();
  }

  /// What is left after a crash now.
  [[nodiscard]] std::span<const std::byte> durable() const { return durable_; }

 private:
  static constexpr double kEvicted = 0.5;
  struct Part {
    std::size_t offset;
    std::size_t bytes;
  };
  void make_durable(const Part& part) {
    const auto from = memory_.subspan(part.offset, part.bytes);
    std::ranges::copy(from, durable_.begin() + static_cast<std::ptrdiff_t>(part.offset));
  }

  std::span<const std::byte> memory_;
  std::vector<std::byte> durable_;
  base::Random random_;
  std::optional<const std::byte*> other_mapping_;
  std::vector<Part> unfenced_;
};

/// WRITEs into persistent memory, one at a time: what is acknowledged must outlive a crash at that
/// moment. Returns what was lost; empty: nothing.
inline std::string lost_of_acknowledged(const FabricTransport& transport, PlacementPolicy policy,
                                        std::uint64_t seed) {
  FabricScene scene(transport, seed);
  scene.link->far().regions().set_placement_policy(policy);
  OfferedMemory offered = scene.far_memory;
  offered.kind = MemoryKind::persistent;
  const Registration region =
      *scene.link->far().regions().offer(offered, RemoteRights::read | RemoteRights::write);
  const auto pair = scene.connect();
  LossyCache cache(scene.far_bytes(), seed);
  std::uint64_t offset = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::uint64_t length = 1 + scene.random.below(i % 4 == 0 ? 9000 : 300);
    const auto from = scene.noise(length);
    const auto request =
        WorkRequest::write(i, from, region.remote().key, region.remote().at(offset));
    if (scene.run(*pair.near, request).status != Status::success) return "a WRITE failed";
    const auto left = cache.durable().subspan(offset, length);
    if (!std::ranges::equal(left, from)) {
      return "of WRITE " + std::to_string(i) + ", which was acknowledged";
    }
    offset = scene.random.below(FabricScene::kRegionBytes - 9000);
  }
  return "";
}

#endif

}  // namespace espalier::fabric
