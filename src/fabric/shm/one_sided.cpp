// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/one_sided.hpp"

#include <cstring>
#include <span>

namespace espalier::fabric::shm {
namespace {

/// A part of a window, with what keeps it and its key's word mapped.
class MappedPart final : public PeerMemory {
 public:
  MappedPart(std::shared_ptr<const memory::SharedMemory> memory,
             std::shared_ptr<const memory::SharedMemory> words, const Window& window,
             std::span<std::byte> bytes)
      : memory_(std::move(memory)),
        words_(std::move(words)),
        word_(window.word),
        key_(window.key),
        bytes_(bytes) {}
  [[nodiscard]] std::span<std::byte> bytes() const override { return bytes_; }
  [[nodiscard]] bool good() const override {
    return base::load_shared<RegionKey>(word_, std::memory_order_acquire) == key_;
  }

 private:
  std::shared_ptr<const memory::SharedMemory> memory_;
  std::shared_ptr<const memory::SharedMemory> words_;
  const std::byte* word_;
  RegionKey key_;
  std::span<std::byte> bytes_;
};

}  // namespace

std::shared_ptr<PeerMemory> OneSided::writable(RegionKey key, std::uint64_t remote,
                                               std::uint64_t bytes, bool& asks) {
  const Window* const window = cache_.find(key);
  asks = window == nullptr && key != 0 && word(key) == key;
  if (window == nullptr || !good(*window)) return nullptr;
  const std::uint64_t offset = remote - window->base;
  if (offset > window->bytes || bytes > window->bytes - offset ||
      !includes(window->rights, RemoteRights::write) || !window->placement.is_ordinary()) {
    return nullptr;
  }
  auto mapping = cache_.mapping(key);
  return std::make_shared<MappedPart>(std::move(mapping), words_, *window,
                                      std::span(window->at + offset, bytes));
}

OneSided::Outcome OneSided::run(const WorkRequest& request, std::uint64_t& old_value) {
  if (request.bytes == 0) return Outcome::done;
  const bool atomic = is_atomic(request.opcode);
  if (atomic && request.remote % kAtomicBytes != 0) return Outcome::invalid;
  const Window* const window = cache_.find(request.key);
  if (window == nullptr) [[unlikely]]
    return run_unmapped(request);
  if (!permits(*window, request)) return Outcome::access;
  if (!good(*window)) [[unlikely]]
    return read_void(request);
  std::byte* const at = window->at + (request.remote - window->base);
  if (request.opcode == Opcode::read) {
    copy_from_shared(request.local, at, request.bytes);
    const bool still_good = good(*window) || planted(Bug::void_seen_before_only);
    return still_good ? Outcome::done : read_void(request);
  }
  if (!atomic) {
    base::release_fence();  // behind all that was written before
    store_placed(at, request.local, request.bytes, window->placement);
    finish_write({at, window->placement}, request.bytes, *placed_);
  } else {
    // The peer may have lied about where it begins.
    if (reinterpret_cast<std::uintptr_t>(at) % kAtomicBytes != 0) return Outcome::invalid;
    old_value = change(request, at);
    if (request.local != nullptr) base::store_plain(request.local, old_value);
  }
  if (good(*window)) [[likely]]
    return Outcome::done;
  return atomic ? Outcome::too_late : Outcome::access;
}

bool OneSided::permits(const Window& window, const WorkRequest& request) {
  const std::uint64_t offset = request.remote - window.base;
  return offset <= window.bytes && request.bytes <= window.bytes - offset &&
         includes(window.rights, rights_for(request.opcode));
}

// A key that stands neither among the good ones nor among the void ones need not be asked for.
OneSided::Outcome OneSided::run_unmapped(const WorkRequest& request) const {
  const RegionKey key = request.key;
  if (key == 0) return Outcome::access;
  const RegionKey now = word(key);
  if (now == key) return Outcome::unmapped;
  if (now != void_word(key) || request.opcode != Opcode::read) return Outcome::access;
  const auto known = voids_.find(key);
  if (known == voids_.end()) return Outcome::unmapped;
  return permits(known->second, request) ? read_void(request) : Outcome::access;
}

// What becomes of a request that is permitted, but by a key that is not good (any more).
OneSided::Outcome OneSided::read_void(const WorkRequest& request) const {
  if (request.opcode != Opcode::read || word(request.key) != void_word(request.key)) {
    return Outcome::access;
  }
  std::memset(request.local, 0, request.bytes);
  return Outcome::done;
}

// What is forgotten is asked for again.
void OneSided::insert_void(const Window& window) {
  if (voids_.size() >= MappingCache::kMappingsMax) voids_.clear();
  voids_.insert_or_assign(window.key, window);
}

std::uint64_t OneSided::change(const WorkRequest& request, std::byte* at) {
  const auto word = base::shared<std::uint64_t>(at);
  if (request.opcode == Opcode::fetch_add) return word.fetch_add(request.operand);
  std::uint64_t seen = request.compare;
  word.compare_exchange_strong(seen, request.operand);
  return seen;
}

}  // namespace espalier::fabric::shm
