// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/execute.hpp"

#include <new>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "catalog/catalog.hpp"
#include "catalog/unflushed_age.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "memory/staged_bytes.hpp"
#include "store/store_core.hpp"

namespace espalier::hash_calls {

using hash::HashMap;
using hash::HashThread;
using hash::HashThreadLease;
using hash::WriteHelp;
using hash::WriteOp;

namespace {

Begun<ItemWritten> begin_write(HashMap& of, HashThread& thread, WriteOp op, std::string_view key,
                               std::string_view value, const WriteHelp& help,
                               const Condition& condition = {}) {
  const auto begun = of.begin(thread, op, key, value, condition, help);
  if (!begun.answer) {
    return Begun<ItemWritten>(std::unexpected(begun.answer.error()), begun.version);
  }
  const hash::HashWritten& written = *begun.answer;
  return Begun(Result<ItemWritten>({written.existed, written.applied, written.version}),
               begun.version);
}

Begun<ItemWritten> begin_as(HashMap& of, HashThread& thread, const Put& asked,
                            const WriteHelp& help) {
  return begin_write(of, thread, WriteOp::put, asked.key, asked.value, help);
}

Begun<ItemWritten> begin_as(HashMap& of, HashThread& thread, const Insert& asked,
                            const WriteHelp& help) {
  return begin_write(of, thread, WriteOp::insert, asked.key, asked.value, help);
}

Begun<ItemWritten> begin_as(HashMap& of, HashThread& thread, const Update& asked,
                            const WriteHelp& help) {
  return begin_write(of, thread, WriteOp::update, asked.key, asked.value, help);
}

Begun<ItemWritten> begin_as(HashMap& of, HashThread& thread, const Erase& asked,
                            const WriteHelp& help) {
  return begin_write(of, thread, WriteOp::erase, asked.key, {}, help);
}

Begun<ItemWritten> begin_as(HashMap& of, HashThread& thread, const CompareAndSet& asked,
                            const WriteHelp& help) {
  const auto kind = wire::condition_kind(asked.comparison.kind);
  if (!kind) return Begun<ItemWritten>(fail(Code::invalid_argument, asked.comparison.kind));
  const WriteOp op = asked.comparison.erase != 0 ? WriteOp::erase : WriteOp::put;
  return begin_write(of, thread, op, asked.key, asked.value, help,
                     {*kind, asked.comparison.version, asked.expected});
}

Begun<Summed> begin_as(HashMap& of, HashThread& thread, const Add& asked, const WriteHelp& help) {
  const auto begun = of.begin_add(thread, asked.key, asked.amount, help);
  if (!begun.answer) return Begun<Summed>(std::unexpected(begun.answer.error()), begun.version);
  const hash::HashSummed& summed = *begun.answer;
  return Begun(Result<Summed>({summed.existed, summed.version, summed.sum}), begun.version);
}

// With what this thread keeps for the maps of the store.
template <class Request>
Begun<typename Request::Reply> begin_here(HashMap& of, const Request& asked,
                                          const WriteHelp& help) {
  using Reply = typename Request::Reply;
  if (of.is_dropped()) return Begun<Reply>(fail(Code::not_found, of.id()));
  const auto lease = HashThreadLease::take(of.store().threads);
  if (!lease) return Begun<Reply>(std::unexpected(lease.error()));
  return begin_as(of, **lease, asked, help);
}

template <class Request>
Result<typename Request::Reply> execute_write(HashMap& of, const Request& asked) {
  catalog::wait_for_disk(of);
  return of.await(begin_here(of, asked, {}));
}

template <class Request>
Begun<typename Request::Reply> begin_at_once(HashMap& of, const Request& asked, WriteHelp help) {
  help.waits = false;
  return begin_here(of, asked, help);
}

}  // namespace

Opened Opened::of(const HashMap& map) {
  return {map.id(), map.shape(), wire::number_of(map.options().durability),
          wire::OwnBytes(map.options().group)};
}

Result<std::shared_ptr<HashMap>> obtain(catalog::Catalog& catalog, const Create& asked) {
  hash::HashOptions options = hash::options_of(asked.shape, asked.group);
  options.durability = wire::durability_of(asked.durability);
  return hash::create_hash_map(hash::hash_store_of(catalog), asked.name, options);
}

Result<std::shared_ptr<HashMap>> obtain(catalog::Catalog& catalog, const Open& asked) {
  return catalog.open<HashMap>(asked.name);
}

Result<Opened> execute(HashMap& of, const Open&) {
  if (of.is_dropped()) return fail(Code::not_found, of.id());
  return Opened::of(of);
}

Result<Numbers> execute(HashMap& of, const Stats&) {
  if (of.is_dropped()) return fail(Code::not_found, of.id());
  return Numbers{of.all_numbers()};
}

// Its versions move meanwhile: word by word, each is whole.
Result<hash::HashPlace> place_of(const HashMap& map) {
  if (map.is_dropped()) return fail(Code::not_found, map.id());
  if (!map.versions) return fail(Code::unsupported);
  hash::HashPlace place{};
  place.header_offset = map.header_offset;
  auto* const to = reinterpret_cast<std::byte*>(&place.header);
  for (std::size_t at = 0; at < sizeof place.header; at += sizeof(std::uint64_t)) {
    base::store_plain(to + at,
                      base::load_shared<std::uint64_t>(map.image + map.header_offset + at));
  }
  return place;
}

Result<ItemWritten> execute(HashMap& of, const Put& asked) { return execute_write(of, asked); }
Result<ItemWritten> execute(HashMap& of, const Insert& asked) { return execute_write(of, asked); }
Result<ItemWritten> execute(HashMap& of, const Update& asked) { return execute_write(of, asked); }
Result<ItemWritten> execute(HashMap& of, const Erase& asked) { return execute_write(of, asked); }
Result<ItemWritten> execute(HashMap& of, const CompareAndSet& asked) {
  return execute_write(of, asked);
}
Result<Summed> execute(HashMap& of, const Add& asked) { return execute_write(of, asked); }

Begun<ItemWritten> begin(HashMap& of, const Put& asked, const WriteHelp& help) {
  return begin_at_once(of, asked, help);
}
Begun<ItemWritten> begin(HashMap& of, const Insert& asked, const WriteHelp& help) {
  return begin_at_once(of, asked, help);
}
Begun<ItemWritten> begin(HashMap& of, const Update& asked, const WriteHelp& help) {
  return begin_at_once(of, asked, help);
}
Begun<ItemWritten> begin(HashMap& of, const Erase& asked, const WriteHelp& help) {
  return begin_at_once(of, asked, help);
}
Begun<ItemWritten> begin(HashMap& of, const CompareAndSet& asked, const WriteHelp& help) {
  return begin_at_once(of, asked, help);
}
Begun<Summed> begin(HashMap& of, const Add& asked, const WriteHelp& help) {
  return begin_at_once(of, asked, help);
}

bool may_try_again(const HashMap& of, tree::StarvedWrite& starved) {
  return of.may_try_again(starved);
}

void make_room(HashMap& of, const tree::StarvedWrite& starved) noexcept {
  try {
    const auto lease = HashThreadLease::take(of.store().threads);
    if (lease) of.make_room(**lease, starved);
  } catch (const std::bad_alloc&) {  // the write is refused, then
  }
}

bool is_recorded(const HashMap& of) { return of.redo() != nullptr; }
bool may_begin(HashMap& of) { return of.clock().may_take() && !catalog::must_wait_for_disk(of); }
bool released(HashMap& of, std::uint64_t version) { return of.released(version); }
bool is_lost(const HashMap& of) { return of.clock().failed(); }
bool wait_for(HashMap& of, std::uint64_t version) { return of.wait_for(version); }

Reading::Reading(HashMap& map, std::string_view key)
    : map_(map),
      lease_(HashThreadLease::take(map.store().threads)),
      found_(fail(Code::not_found, map.id())) {
  if (!lease_) [[unlikely]] {
    found_ = std::unexpected(lease_.error());
    return;
  }
  HashThread& thread = **lease_;
  const hash::KeyHash hashed = map.hash(key);
  thread.slot.enter();
  if (map.is_dropped()) [[unlikely]]
    return;
  const hash::HashAnswer answer = hash::HashReader::get_exposed(map, thread, key, hashed);
  found_ = ItemFound{answer.found, answer.version, answer.read_version, answer.value};
}

Reading::~Reading() {
  if (lease_) (**lease_).slot.exit();
}

base::EpochPin Reading::pin() const {
  return map_.store().core.epoch_pins.pin((**lease_).slot.exposed());
}

Result<memory::StagedBytes> stage(HashMap& of, std::string_view key, std::string_view value) {
  const auto lease = HashThreadLease::take(of.store().threads);
  if (!lease) return std::unexpected(lease.error());
  return of.stage(**lease, key, value);
}

// It is another value already where its length is another.
Result<LongComparison> LongComparison::begin(HashMap& of, std::string_view key,
                                             std::string_view expected) {
  if (of.is_dropped()) return fail(Code::not_found, of.id());
  const auto lease = HashThreadLease::take(of.store().threads);
  if (!lease) return std::unexpected(lease.error());
  LongComparison made;
  const hash::ExposedEpoch exposed(**lease);
  const HashMap::Seen seen = of.read_newest(**lease, of.hash(key), key);
  made.seen_ = seen.stamp;
  made.version_ = seen.version;
  made.expected_ = expected;
  made.differs_ = !seen.value || seen.value->size() != expected.size();
  if (made.differs_) return made;
  made.found_ = *seen.value;
  made.pin_ = of.store().core.epoch_pins.pin((**lease).slot.exposed());
  return made;
}

bool LongComparison::step(std::size_t bytes) {
  const std::string_view piece = expected_.substr(compared_, bytes);
  differs_ = piece != found_.substr(compared_, piece.size());
  compared_ += piece.size();
  if (is_over()) pin_ = base::EpochPin();
  return is_over();
}

}  // namespace espalier::hash_calls
