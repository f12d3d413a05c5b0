// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/one_sided.hpp"

namespace espalier::fabric::shm {

OneSided::Outcome OneSided::run(const WorkRequest& request, std::uint64_t& old_value) {
  if (request.bytes == 0) return Outcome::done;
  const bool atomic = is_atomic(request.opcode);
  if (atomic && request.remote % kAtomicBytes != 0) return Outcome::invalid;
  const Window* const window = cache_.find(request.key);
  if (window == nullptr) [[unlikely]]
    return unknown(request.key);
  const std::uint64_t offset = request.remote - window->base;
  if (offset > window->bytes || request.bytes > window->bytes - offset ||
      !includes(window->rights, rights_for(request.opcode)) || !good(*window)) [[unlikely]] {
    return Outcome::access;
  }
  std::byte* const at = window->at + offset;
  if (request.opcode == Opcode::read) {
    copy_from_shared(request.local, at, request.bytes);
    acquire_fence();  // the key is looked at after the last byte, and the next READ reads later
  } else if (!atomic) {
    base::release_fence();  // behind all that was written before
    copy_to_shared(at, request.local, request.bytes);
  } else {
    // Its owner may not have told the truth about where it begins.
    if (reinterpret_cast<std::uintptr_t>(at) % kAtomicBytes != 0) return Outcome::invalid;
    old_value = change(request, at);
    if (request.local != nullptr) base::store_plain(request.local, old_value);
  }
  return good(*window) ? Outcome::done : Outcome::access;
}

// A key that does not stand among the good ones need not be asked for.
OneSided::Outcome OneSided::unknown(RegionKey key) const {
  const auto word = base::load_shared<RegionKey>(word_of(words_, key), std::memory_order_acquire);
  return key != 0 && word == key ? Outcome::unmapped : Outcome::access;
}

std::uint64_t OneSided::change(const WorkRequest& request, std::byte* at) {
  const auto word = base::shared<std::uint64_t>(at);
  if (request.opcode == Opcode::fetch_add) return word.fetch_add(request.operand);
  std::uint64_t seen = request.compare;
  word.compare_exchange_strong(seen, request.operand);
  return seen;
}

}  // namespace espalier::fabric::shm
