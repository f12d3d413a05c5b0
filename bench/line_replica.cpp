// SPDX-License-Identifier: Apache-2.0
#include "bench/line_replica.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/past_cache.hpp"
#include "base/prefetch.hpp"
#include "bench/map_session.hpp"
#include "memory/region.hpp"
#include "store/clock_groups.hpp"
#include "store/transaction.hpp"
#include "store/transaction_request.hpp"

namespace espalier::bench {
namespace {

constexpr std::size_t kPersistentBytes = std::size_t{4} << 20;
constexpr std::uint64_t kMessageBudget = std::uint64_t{64} << 20;

memory::Region region_for(std::uint64_t pairs, std::uint32_t value_bytes) {
  const std::uint64_t bytes = (std::uint64_t{64} << 20) + pairs * 4 * (value_bytes + 128);
  return value_or_throw(memory::Region::reserve({.bytes_max = bytes}), "no memory for a store");
}

[[noreturn]] void throw_transaction(const Error& error) {
  throw std::runtime_error("a transaction is refused: " + message(error));
}

}  // namespace

PersistentRing::PersistentRing() : memory_(kPersistentBytes + base::kLineBytes), mark_(0) {}

// Records begin at a cache line, as in a log of persistent memory.
Result<std::span<std::byte>> PersistentRing::reserve(std::size_t bytes) noexcept {
  if (bytes > kPersistentBytes) return fail(Code::value_too_long);
  if (kPersistentBytes - next_ < bytes) next_ = 0;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
  const std::size_t to_line = base::round_up(begin, base::kLineBytes) - begin;
  return std::span(memory_).subspan(to_line + next_, bytes);
}

std::uint64_t PersistentRing::hand_over(std::span<std::byte> record) noexcept {
  base::write_back(record);
  base::fence_past_cache();
  newest_ = record;
  next_ = std::min(kPersistentBytes, next_ + base::round_up(record.size(), base::kLineBytes));
  return ++count_;
}

LineReplica::LineReplica(std::uint64_t pairs, std::uint32_t value_bytes)
    : store_(region_for(pairs, value_bytes), 64),
      services_(store_, kMessageBudget, {}, {.threads = 1}),
      target_(services_, {}),
      map_([this] {
        store_.groups->share();
        return value_or_throw(hash::create_hash_map(hash::hash_store_of(store_.catalog), kMap),
                              "no hash map");
      }()),
      thread_(value_or_throw(hash::HashThread::join(hash::hash_store_of(store_.catalog)),
                             "no place in the store")),
      clock_(&map_->clock()) {}

std::string_view LineReplica::execute(const object_calls::Transact& asked) {
  auto objects = store::read_transaction(store_.catalog, asked);
  if (!objects) throw_transaction(objects.error().error);
  const auto done = store::transact(store_, *objects, {.briefly = true, .answer = &found_});
  if (!done) throw_transaction(done.error());
  if (done->too_long || done->refused || done->failed_step) {
    throw std::runtime_error("a transaction of the benchmark is not done");
  }
  waits_for_ = done->wait_for;
  return found_;
}

void LineReplica::acknowledge() {
  log_.mark().rise(log_.handed_over());
  ESPALIER_ASSERT(clock_->released() >= waits_for_);
}

void LineReplica::apply(std::span<const std::byte> record) {
  const auto applied = target_.apply({reinterpret_cast<const char*>(record.data()), record.size()});
  if (!applied) throw std::runtime_error("a record is refused: " + message(applied.error()));
}

void LineReplica::put(std::string_view key, std::string_view value) {
  static_cast<void>(value_or_throw(map_->put(thread_, key, value), "cannot put a pair"));
}

std::string LineReplica::value_of(std::string_view key) {
  auto found = value_or_throw(map_->get(thread_, key), "cannot get a pair");
  if (!found) throw std::runtime_error("a pair of the benchmark is gone");
  return *std::move(found);
}

}  // namespace espalier::bench
