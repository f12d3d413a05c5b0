// SPDX-License-Identifier: Apache-2.0
#include "kinds/region/region_object.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/barrier.hpp"
#include "base/bytes.hpp"
#include "base/past_cache.hpp"
#include "catalog/object_redo.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/samples.hpp"
#include "fabric/placed_write.hpp"
#include "fabric/shared_copy.hpp"
#include "kinds/region/planted_region_bugs.hpp"
#include "store/store_core.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::region {
namespace {

constexpr std::uint64_t kRegionPageBytes = 4096;
/// What one pass of the gate copies, for a drop waits for it.
constexpr std::uint64_t kPassBytes = 65536;

std::atomic<std::uint32_t> live_regions{0};

std::unexpected<Error> fail_with(RegionFault fault) {
  return fail(Code::invalid_argument, static_cast<std::uint32_t>(fault));
}

}  // namespace

std::uint64_t charged_for(std::uint64_t bytes) {
  return planted(Bug::not_counted) ? 0 : base::round_up(bytes, kRegionPageBytes);
}

Result<std::shared_ptr<RegionObject>> RegionObject::make(memory::Region& limited, std::uint32_t id,
                                                         std::string name, std::uint64_t bytes,
                                                         const RegionSource& source) {
  ESPALIER_ASSERT(bytes != 0);
  if (live() >= kMost) return fail(Code::out_of_memory, kMost);
  if (bytes > limited.limit_bytes()) return limited.out_of_memory();
  const std::uint64_t charged = charged_for(bytes);
  if (const auto taken = limited.charge(charged); !taken) return std::unexpected(taken.error());
  Result<memory::SharedMemory> memory = memory::SharedMemory();
  Result<FileMemory> file = FileMemory();
  if (source.is_persistent && source.files != nullptr && source.files->is_open()) {
    file = source.is_restored ? source.files->find(id, bytes) : source.files->make(id, bytes);
  }
  if (file && !*file) memory = memory::SharedMemory::create("espalier-region", bytes);
  if (!memory || !file) {
    limited.uncharge(charged);
    return std::unexpected(memory ? file.error() : memory.error());
  }
  try {
    return std::shared_ptr<RegionObject>(new RegionObject(
        limited, id, std::move(name), std::move(*memory), std::move(*file), source));
  } catch (...) {  // where it was made, it has given back what was charged
    if (*memory || *file) limited.uncharge(charged);
    throw;
  }
}

RegionObject::RegionObject(memory::Region& limited, std::uint32_t id, std::string name,
                           memory::SharedMemory memory, FileMemory file, const RegionSource& source)
    : limited_(limited),
      id_(id),
      name_(std::move(name)),
      memory_(std::move(memory)),
      file_(std::move(file)),
      source_(source) {
  ++live_regions;
}

// A peer that maps the memory keeps the mapping, and none of the pages.
RegionObject::~RegionObject() {
  keys_.clear();
  if (memory_) memory_.discard();
  // The drop's record is handed over by now; a crash before it is durable finds the region again.
  // Without a sink, records are being applied: the drop may be undone by the next start.
  if (file_ && is_dropped() && redo() != nullptr) {
    source_.files->remove(id_, *redo(), redo()->handed_over());
  }
  limited_.uncharge(charged_for(bytes()));
  --live_regions;
}

std::uint32_t RegionObject::live() { return live_regions.load(); }

// In pieces of whole words, so that none is torn.
Result<void> RegionObject::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (const auto fault = fault_of_range(bytes(), offset, into.size())) return fail_with(*fault);
  do {
    const AccessGate::Pass pass(gate_);
    if (!pass) return fail(Code::not_found, id_);
    const std::uint64_t piece =
        std::min<std::uint64_t>(into.size(), kPassBytes - offset % kWordBytes);
    fabric::copy_from_shared(into.data(), at(offset), piece);
    into = into.subspan(piece);
    offset += piece;
  } while (!into.empty());
  return {};
}

Result<void> RegionObject::write(std::uint64_t offset, std::span<const std::byte> from) {
  if (const auto fault = fault_of_range(bytes(), offset, from.size())) return fail_with(*fault);
  base::release_fence();
  do {
    const AccessGate::Pass pass(gate_);
    if (!pass) return fail(Code::not_found, id_);
    const std::uint64_t piece =
        std::min<std::uint64_t>(from.size(), kPassBytes - offset % kWordBytes);
    fabric::store_placed(at(offset), from.data(), piece, placement());
    from = from.subspan(piece);
    offset += piece;
  } while (!from.empty());
  return {};
}

std::atomic_ref<std::uint64_t> RegionObject::word(std::uint64_t offset) const {
  return base::shared<std::uint64_t>(at(offset));
}

Result<std::uint64_t> RegionObject::fetch_add(std::uint64_t offset, std::uint64_t amount) {
  if (const auto fault = fault_of_word(bytes(), offset)) return fail_with(*fault);
  const AccessGate::Pass pass(gate_);
  if (!pass) return fail(Code::not_found, id_);
  const std::uint64_t before = word(offset).fetch_add(amount);
  flush_word(offset);
  return before;
}

Result<std::uint64_t> RegionObject::compare_swap(std::uint64_t offset, std::uint64_t compare,
                                                 std::uint64_t swap) {
  if (const auto fault = fault_of_word(bytes(), offset)) return fail_with(*fault);
  const AccessGate::Pass pass(gate_);
  if (!pass) return fail(Code::not_found, id_);
  std::uint64_t seen = compare;
  word(offset).compare_exchange_strong(seen, swap);
  flush_word(offset);  // also if another writer's value is returned
  return seen;
}

void RegionObject::flush_word(std::uint64_t offset) const {
  if (!is_persistent()) return;
  base::write_back({at(offset), kWordBytes});
  base::fence_past_cache();
}

fabric::Placement RegionObject::placement() const {
  const auto kind =
      is_persistent() ? fabric::MemoryKind::persistent : fabric::MemoryKind::volatile_memory;
  return fabric::placement_of(kind, fabric::PlacementPolicy::adaptive);
}

Result<RegionKey> RegionObject::offer(fabric::RegionTable& regions, fabric::RemoteRights rights,
                                      fabric::Domain domain, std::shared_ptr<const void> place) {
  const std::lock_guard lock(mutex_);
  if (is_dropped()) return fail(Code::not_found, id_);
  auto key = regions.offer(
      {at(0), bytes(), memory_ ? memory_.descriptor() : -1, 0, placement().kind}, rights, domain);
  if (!key) return std::unexpected(key.error());
  const fabric::RemoteRegion remote = key->remote();
  const std::uint64_t number = ++keys_made_;
  keys_.emplace(number, Offered{std::move(place), std::move(*key)});
  return RegionKey(weak_from_this(), number, remote);
}

std::size_t RegionObject::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_.size();
}

// Under the lock: a thread that finds a key gone may rely on its being revoked.
void RegionObject::revoke(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  keys_.erase(number);
}

// The gate first: a key that is asked for from now on is refused.
void RegionObject::set_dropped() {
  if (!planted(Bug::gate_open)) gate_.close();
  const std::lock_guard lock(mutex_);
  if (!planted(Bug::keys_kept)) keys_.clear();
}

std::string RegionObject::description() const {
  const std::uint64_t length = bytes();
  return std::string(base::bytes_of(length));
}

catalog::ObjectNumbers RegionObject::numbers() const {
  return {0, sizeof(RegionObject) + charged_for(bytes())};
}

void RegionObject::add_samples(catalog::SampleList& to) const {
  to.gauge({"size_bytes", "bytes", "How many bytes it has."}, bytes());
  to.gauge({"keys", "", "Sessions that may read and write it by themselves."}, keys());
}

RegionKey::RegionKey(RegionKey&& other) noexcept
    : of_(std::move(other.of_)), number_(other.number_), remote_(other.remote_) {}

RegionKey& RegionKey::operator=(RegionKey&& other) noexcept {
  if (this == &other) return *this;
  revoke();
  of_ = std::move(other.of_);
  number_ = other.number_;
  remote_ = other.remote_;
  return *this;
}

void RegionKey::revoke() {
  if (const auto of = std::exchange(of_, {}).lock()) of->revoke(number_);
}

bool RegionKey::good() const {
  const auto of = of_.lock();
  return of != nullptr && !of->is_dropped();
}

Result<std::shared_ptr<RegionObject>> create_region(catalog::Catalog& catalog,
                                                    std::string_view name, std::uint64_t bytes) {
  if (bytes == 0) return fail(Code::invalid_argument);
  ESPALIER_ASSERT(catalog.store() != nullptr);
  memory::Region& limited = catalog.store()->region;
  RegionFiles& files = catalog.store()->parts.of<RegionFiles>();
  const RegionSource source{files.is_open(), &files, false};
  const PersistentForm persistent{bytes, PersistentForm::kPersistent, 0};
  const std::string_view form =
      source.is_persistent ? base::bytes_of(persistent) : base::bytes_of(bytes);
  return catalog.create<RegionObject>(name, form, [&](std::uint32_t id, std::string own_name) {
    return RegionObject::make(limited, id, std::move(own_name), bytes, source);
  });
}

Result<std::shared_ptr<RegionObject>> restore_region(catalog::Catalog& catalog,
                                                     const catalog::CreatedObject& created) {
  PersistentForm form{};
  wire::PayloadReader reader(created.form);
  if (created.form.size() == sizeof form) {
    form = reader.take<PersistentForm>();
  } else {
    form.bytes = reader.take<std::uint64_t>();
  }
  const bool good = reader.complete() && form.bytes != 0 && form.reserved == 0 &&
                    form.kind == (created.form.size() == sizeof form ? form.kPersistent : 0);
  if (!good) return catalog::corrupt(catalog::RedoFault::form);
  ESPALIER_ASSERT(catalog.store() != nullptr);
  memory::Region& limited = catalog.store()->region;
  RegionFiles& files = catalog.store()->parts.of<RegionFiles>();
  const RegionSource source{form.kind == form.kPersistent, &files, true};
  return catalog.restore<RegionObject>(created, [&](std::uint32_t id, std::string own_name) {
    return RegionObject::make(limited, id, std::move(own_name), form.bytes, source);
  });
}

}  // namespace espalier::region
