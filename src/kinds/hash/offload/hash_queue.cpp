// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/offload/hash_queue.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "catalog/catalog.hpp"
#include "engine/free_dropped.hpp"
#include "engine/scheduler.hpp"
#include "engine/services.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/hash_threads.hpp"  // inlined by its leases
#include "store/store_core.hpp"
#include "wire/message.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint32_t kReadsOfEpoch = 16;

Result<hash::HashThreadLease> take_lease(const hash::HashMap& map) {
  try {
    return hash::HashThreadLease::take(map.store().threads);
  } catch (const std::bad_alloc&) {
    return fail(Code::out_of_memory);
  }
}

}  // namespace

const ExecutorKind kHashQueue{[](const ExecutorContext& context) -> std::unique_ptr<Executor> {
  return std::make_unique<HashQueue>(context);
}};

HashQueue::HashQueue(const ExecutorContext& context)
    : scheduler_(context.scheduler),
      services_(context.services),
      queue_(hash::PipelineDistances::of_machine(), 1) {}

void await_turn(Executor& queue, Request& request, bool reads) {
  static_cast<HashQueue&>(queue).push(request, reads);
}

base::EpochPin pin_found(const hash::HashMap& map, const HashTurn& turn) {
  return map.store().core.epoch_pins.pin(turn.thread->slot.exposed());
}

bool ServedHash::is_released(std::uint64_t version) const { return map->released(version); }

// --- maps ----------------------------------------------------------------------------------------

bool HashQueue::admit(Request& request) {
  ServedHash* const served = find(request.header.map);
  if (served == nullptr) {
    scheduler_.fail(request, {Code::not_found, 0, request.header.map});
    return false;
  }
  ++served->users;
  request.works_on = served;
  return true;
}

ServedHash* HashQueue::find(std::uint32_t number) {
  if (last_ != nullptr && number == last_number_) [[likely]]
    return last_;
  auto known = maps_.find(number);
  if (known == maps_.end()) {
    auto map = services_.catalog().find<hash::HashMap>(number);
    if (map == nullptr) return nullptr;
    known = maps_.emplace(number, std::make_unique<ServedHash>(std::move(map))).first;
  }
  last_number_ = number;
  last_ = known->second.get();
  return last_;
}

// Freed on another thread, because that takes time by the size of the map. The entry keeps the map
// until it is gone: without memory to start that, it stays until the next time.
void HashQueue::maintain() {
  std::erase_if(maps_, [&](const Maps::value_type& entry) {
    ServedHash& served = *entry.second;
    if (served.users != 0 || !served.map->is_dropped()) return false;
    if (last_ == &served) last_ = nullptr;
    begin_to_free(services_, served.map);
    return true;
  });
}

// --- turns ---------------------------------------------------------------------------------------

void HashQueue::push(Request& request, bool reads) {
  hash::HashMap& map = *static_cast<ServedHash&>(*request.works_on).map;
  queue_.push(map, request.key(), {&request, reads});
  ++came_;
  ask_for_turn();
}

bool HashQueue::turn() {
  const std::size_t came = std::exchange(came_, 0);
  if (queue_.empty()) return false;
  const bool alone = came == queue_.size() && came <= kFew;
  const std::size_t left = alone ? 0 : std::min<std::size_t>(came, queue_.distances().bin);
  while (!queue_.empty()) {
    const auto read_on = read(left);
    if (queue_.size() <= left) break;
    if (!read_on) {  // the next request fails, and those behind it are tried
      refuse_next(read_on.error());
      continue;
    }
    if (queue_.next().what.reads) continue;  // with a new epoch
    const Queue::Place& place = queue_.take();
    const hash::KeyHash hash = place.hash();
    const HashTurn turn{hash};
    scheduler_.go_on_with(*place.what.request, &turn);
  }
  if (!queue_.empty()) ask_for_turn();
  return true;
}

// Reads for those whose turn it is, up to a write, until so many are left, or up to the limit of
// one epoch: they may have long values copied, and an exposed epoch delays reclamation.
// Errors: those of HashThreadLease::take(); out_of_memory.
Result<void> HashQueue::read(std::size_t left) {
  const auto lease = take_lease(*queue_.next().map);
  if (!lease) return std::unexpected(lease.error());
  hash::HashThread& thread = **lease;
  const hash::ExposedEpoch exposed(thread);
  queue_.look_ahead(left);
  for (std::uint32_t i = 0; i < kReadsOfEpoch && queue_.size() > left; ++i) {
    if (!queue_.next().what.reads) break;
    answer(queue_.take(), thread);
    queue_.look_ahead(left);
  }
  return {};
}

void HashQueue::answer(const Queue::Place& place, hash::HashThread& thread) {
  Request& request = *place.what.request;
  const hash::HashMap& map = *place.map;
  if (map.is_dropped()) [[unlikely]] {
    return scheduler_.guarded(request,
                              [&] { scheduler_.fail(request, {Code::not_found, 0, map.id()}); });
  }
  const hash::KeyHash hash = place.hash();
  const hash::HashAnswer answer =
      hash::HashReader::get_exposed(map, thread, request.key(), hash, place.hint);
  const hash_calls::ItemFound found{answer.found, wire::in_register(answer.version),
                                    wire::in_register(answer.read_version),
                                    wire::in_register(answer.value)};
  const HashTurn turn{hash, &found, &thread};
  scheduler_.go_on_with(request, &turn);
}

void HashQueue::refuse_next(const Error& why) {
  Request& request = *queue_.refuse().what.request;
  scheduler_.guarded(request, [&] { scheduler_.fail(request, why); });
}

}  // namespace espalier::offload
