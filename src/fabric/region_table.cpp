// SPDX-License-Identifier: Apache-2.0
#include "fabric/region_table.hpp"

#include <fcntl.h>
#include <sys/random.h>

#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "base/random.hpp"
#include "base/system_error.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::fabric {
namespace {

constexpr std::uint32_t kPlaceBits = 16;
constexpr std::uint32_t kPlaceMask = RegionTable::kRegionsMax - 1;
constexpr std::uint64_t kBaseMin = std::uint64_t{1} << 46;
constexpr std::uint64_t kBaseSpan = std::uint64_t{1} << 62;

// Not 0, which is no key, and not the one that its place had before.
RegionKey make_key(std::uint64_t random, std::uint32_t number, RegionKey before) {
  auto tag = static_cast<std::uint32_t>(random >> 48);
  while (tag == 0 || tag == before >> kPlaceBits) tag = (tag + 1) & 0xFFFF;
  return tag << kPlaceBits | number;
}

}  // namespace

Registration::Registration(Registration&& other) noexcept
    : table_(std::move(other.table_)), remote_(other.remote_) {}

Registration& Registration::operator=(Registration&& other) noexcept {
  if (this == &other) return *this;
  revoke();
  table_ = std::move(other.table_);
  remote_ = other.remote_;
  return *this;
}

void Registration::make_void() {
  if (table_ != nullptr) table_->make_void(remote_.key);
}

void Registration::revoke() {
  if (const auto table = std::exchange(table_, nullptr)) table->revoke(remote_.key);
}

Result<std::shared_ptr<RegionTable>> RegionTable::create(std::optional<std::uint64_t> seed) {
  auto words = memory::SharedMemory::create("espalier-keys", kRegionsMax * sizeof(RegionKey));
  if (!words) return std::unexpected(words.error());
  return std::shared_ptr<RegionTable>(new RegionTable(std::move(*words), seed));
}

RegionTable::RegionTable(memory::SharedMemory words, std::optional<std::uint64_t> seed)
    : words_(std::move(words)),
      asymmetric_(base::register_asymmetric_barriers()),
      chunks_(std::make_unique<std::atomic<Chunk*>[]>(kRegionsMax / kPlacesPerChunk)),
      seed_(seed) {}

RegionTable::~RegionTable() { ESPALIER_ASSERT(readers_.empty()); }

Result<std::uint64_t> RegionTable::draw() {
  if (seed_) return base::splitmix64(*seed_);
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) return base::refused_by_system();
  return number;
}

RegionTable::Place* RegionTable::place_of(RegionKey key) const {
  const std::uint32_t number = key & kPlaceMask;
  Chunk* const chunk = chunks_[number / kPlacesPerChunk].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &chunk->places[number % kPlacesPerChunk];
}

Result<std::uint32_t> RegionTable::free_place() {
  if (free_.empty()) {
    const auto first = static_cast<std::uint32_t>(owned_.size()) * kPlacesPerChunk;
    if (first == kRegionsMax - kKeyedMax) return fail(Code::out_of_memory, first);
    owned_.push_back(std::make_unique<Chunk>());
    chunks_[owned_.size() - 1].store(owned_.back().get(), std::memory_order_release);
    for (std::uint32_t i = kPlacesPerChunk; i != 0; --i) free_.push_back(first + i - 1);
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  return number;
}

Result<Registration> RegionTable::offer(const OfferedMemory& memory, RemoteRights rights,
                                        Domain domain) {
  if (memory.at == nullptr || memory.bytes == 0 || memory.bytes > kBaseMin ||
      rights == RemoteRights::none ||
      (memory.kind == MemoryKind::persistent && includes(rights, RemoteRights::atomic))) {
    return fail(Code::invalid_argument);
  }
  memory::Descriptor descriptor;
  if (memory.descriptor >= 0) {
    descriptor = memory::Descriptor(::fcntl(memory.descriptor, F_DUPFD_CLOEXEC, 0));
    if (!descriptor) return base::refused_by_system();
  }
  const std::scoped_lock lock(mutex_);
  const auto taken = take_place();
  if (!taken) return std::unexpected(taken.error());
  Place& place = *taken->place;
  place.rights = rights;
  place.domain = domain;
  place.base = taken->base + reinterpret_cast<std::uintptr_t>(memory.at) % kAtomicBytes;
  place.memory = memory;
  place.placement = placement_of(memory.kind, policy_.load());
  place.descriptor = std::move(descriptor);
  const RemoteRegion remote{place.base, memory.bytes, taken->key, 0};
  set_word(place, taken->key, taken->key);
  return Registration(shared_from_this(), remote);
}

Result<RegionTable::Taken> RegionTable::take_place() {
  const auto where = draw();
  const auto tag = draw();
  if (!where || !tag) return std::unexpected((where ? tag : where).error());
  const auto number = free_place();
  if (!number) return std::unexpected(number.error());
  Place& place = *place_of(*number);
  place.key_before = make_key(*tag, *number, place.key_before);
  return Taken{&place, place.key_before,
               base::round_down(kBaseMin + base::scale(*where, kBaseSpan - kBaseMin), kPageBytes)};
}

RegionKey RegionTable::agreed_key(std::uint64_t number) {
  const std::uint64_t random = base::splitmix64(number);
  const auto place = static_cast<std::uint32_t>(random % kKeyedMax);
  return make_key(random, kRegionsMax - kKeyedMax + place, 0);
}

Result<RegionTable::Place*> RegionTable::take_keyed(RegionKey key) {
  if (!is_keyed(key) || key >> kPlaceBits == 0) return fail(Code::invalid_argument);
  if (keyed_ == nullptr) {
    keyed_ = std::make_unique<Chunk>();
    chunks_[kRegionsMax / kPlacesPerChunk - 1].store(keyed_.get(), std::memory_order_release);
  }
  Place& place = *place_of(key);
  if (place.word.load(std::memory_order_relaxed) != 0 || place.key_before == key) {
    return fail(Code::already_exists);
  }
  place.key_before = key;
  return &place;
}

Result<RegionTable::Taken> RegionTable::take_keyed() {
  const auto drawn = draw();
  if (!drawn) return std::unexpected(drawn.error());
  for (std::uint64_t i = 0; i < kKeyedMax; ++i) {
    const auto number = static_cast<std::uint32_t>((*drawn + i) % kKeyedMax);
    const RegionKey key = make_key(*drawn, kRegionsMax - kKeyedMax + number, 0);
    const auto place = take_keyed(key);
    if (place) return Taken{*place, key, 0};
    if (place.error().code != Code::already_exists) return std::unexpected(place.error());
  }
  return fail(Code::out_of_memory, kKeyedMax);
}

// Peers that load by themselves look at the shared word after their last byte: so it says first
// that the key is gone.
void RegionTable::set_word(Place& place, RegionKey key, RegionKey word) {
  base::store_shared(words_.at((key & kPlaceMask) * sizeof(RegionKey)), word,
                     std::memory_order_release);
  place.word.store(word, std::memory_order_release);
}

void RegionTable::make_void(RegionKey key) {
  const std::scoped_lock lock(mutex_);
  Place* const place = place_of(key);
  if (key == 0 || place == nullptr || place->word.load(std::memory_order_relaxed) != key) return;
  set_word(*place, key, void_word(key));
  if (!planted(Bug::void_waits_for_nobody)) wait_for_readers();
  place->descriptor.close();
}

void RegionTable::revoke(RegionKey key) {
  const std::scoped_lock lock(mutex_);
  Place* const place = place_of(key);
  if (key == 0 || place == nullptr) return;
  const RegionKey word = place->word.load(std::memory_order_relaxed);
  if (word != key && word != void_word(key)) return;
  set_word(*place, key, 0);
  const Dismissed gone = dismiss_everywhere(key);
  wait_for_readers();
  place->descriptor.close();
  place->shared.reset();
  if (!is_keyed(key)) free_.push_back(key & kPlaceMask);
}

// A reader that has not seen that the key is gone was seen to be between enter() and leave(). It is
// waited for until it has left once, for after that it sees it. To wait until it is seen outside
// could take long: it may enter again and again.
void RegionTable::wait_for_readers() {
  base::rare_barrier(asymmetric_);
  for (const Reader* reader : readers_) {
    const std::uint64_t turn = reader->turn_.load(std::memory_order_acquire);
    if (turn % 2 == 0) continue;
    while (reader->turn_.load(std::memory_order_acquire) == turn) std::this_thread::yield();
  }
}

RegionTable::Reader::Reader(RegionTable& table) : table_(table) {
  const std::scoped_lock lock(table.mutex_);
  table.readers_.push_back(this);
}

RegionTable::Reader::~Reader() {
  const std::scoped_lock lock(table_.mutex_);
  std::erase(table_.readers_, this);
}

void RegionTable::Reader::enter() {
  // Released as leave() does: a thread that sees this turn has seen the end of the one before.
  turn_.store(turn_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  base::frequent_barrier(table_.asymmetric_);
}

std::byte* RegionTable::Reader::find(RegionKey key, std::uint64_t address, std::uint64_t bytes,
                                     RemoteRights rights, Domain domain) const {
  const Place* const place = table_.place_of(key);
  if (key == 0 || place == nullptr || place->word.load(std::memory_order_acquire) != key ||
      !permits(*place, address, bytes, rights, domain)) {
    return nullptr;
  }
  return place->memory.at + (address - place->base);
}

WriteTarget RegionTable::Reader::find_target(RegionKey key, std::uint64_t address,
                                             std::uint64_t bytes, Domain domain) const {
  std::byte* const at = find(key, address, bytes, RemoteRights::write, domain);
  if (at == nullptr) return {};
  return {at, table_.place_of(key)->placement};
}

ReadSource RegionTable::Reader::find_source(RegionKey key, std::uint64_t address,
                                            std::uint64_t bytes, Domain domain) const {
  const Place* const place = table_.place_of(key);
  if (key == 0 || place == nullptr) return {};
  const RegionKey word = place->word.load(std::memory_order_acquire);
  if (word != key && word != void_word(key)) return {};
  if (!permits(*place, address, bytes, RemoteRights::read, domain)) return {};
  if (word != key && !planted(Bug::void_key_serves_bytes)) {
    return {ReadSource::Kind::zeros, nullptr};
  }
  return {ReadSource::Kind::bytes, place->memory.at + (address - place->base)};
}

// Requires: the place has a key, and is not given to another one meanwhile.
bool RegionTable::permits(const Place& place, std::uint64_t address, std::uint64_t bytes,
                          RemoteRights rights, Domain domain) {
  if (place.domain != domain || !includes(place.rights, rights)) return false;
  if (place.shared != nullptr) return false;
  const std::uint64_t offset = address - place.base;
  return offset <= place.memory.bytes && bytes <= place.memory.bytes - offset;
}

Result<RegionTable::Mapping> RegionTable::mapping(RegionKey key, Domain domain) {
  const std::scoped_lock lock(mutex_);
  Place* const place = place_of(key);
  if (key == 0 || place == nullptr) return fail(Code::not_found);
  const RegionKey word = place->word.load(std::memory_order_relaxed);
  const bool is_void = word == void_word(key);
  if ((word != key && !is_void) || place->domain != domain || place->shared != nullptr) {
    return fail(Code::not_found);
  }
  const RemoteRegion remote{place->base, place->memory.bytes, key, 0};
  if (is_void) return Mapping{remote, place->rights, {}, 0, {}, true};
  if (!place->descriptor) return fail(Code::unsupported);
  const bool writes =
      includes(place->rights, RemoteRights::write) || includes(place->rights, RemoteRights::atomic);
  auto copy = memory::copy_descriptor(place->descriptor,
                                      writes ? memory::Rights::write : memory::Rights::read);
  if (!copy) return std::unexpected(copy.error());
  return Mapping{remote,           place->rights, std::move(*copy), place->memory.descriptor_offset,
                 place->placement, false};
}

}  // namespace espalier::fabric
