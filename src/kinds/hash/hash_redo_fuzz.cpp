// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a record of a hash map, or of one that was made: what is read lies within
// them, and what is applied leaves a map that is whole. What is refused changes nothing.
//
// Input: records, each behind its length in 2 bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "kinds/hash/apply_redo.hpp"
#include "kinds/hash/audit.hpp"
#include "kinds/hash/hash_store.hpp"
#include "kinds/hash/redo_record.hpp"
#include "store/store_core.hpp"

namespace espalier::hash {
namespace {

using base::want;

tree::StoreCore make_fuzz_store() {
  constexpr std::uint64_t kBytes = std::uint64_t{64} << 20;
  return {std::move(*memory::Region::reserve({.bytes_max = kBytes, .huge_pages = false})), 16};
}

/// A store with one hash map, whose id is 1.
struct World {
  World() {
    HashOptions options;
    options.partitions = 2;
    options.seed = HashSeed{1, 2};
    map = *create_hash_map(store, "h", options);
  }

  tree::StoreCore core = make_fuzz_store();
  HashStore& store = hash_store_of(core.catalog);
  HashThread thread = *HashThread::join(store);
  std::shared_ptr<HashMap> map;
};

void check_fault(const Error& error) {
  want(error.code == Code::corrupt, "another error than corrupt");
  want(!text_of(static_cast<catalog::RedoFault>(error.detail)).empty(), "a fault without words");
}

void check_whole(HashMap& map) {
  map.trim();
  const HashAudit audited = audit(map);
  want(audited.wrong.empty(), audited.wrong.empty() ? "" : audited.wrong.front().c_str());
}

// Of a hash map that was made.
void restore(const catalog::CreatedObject& created) {
  tree::StoreCore core = make_fuzz_store();
  const auto made = restore_hash_map(hash_store_of(core.catalog), created);
  if (!made) return check_fault(made.error());
  want((*made)->id() == created.id && (*made)->name() == created.name, "another hash map");
  check_whole(**made);
}

void apply(World& world, const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a byte too far is seen
  if (size != 0) std::memcpy(exact.get(), data, size);
  const std::string_view record(exact.get(), size);
  const std::uint64_t taken = world.map->clock().taken();
  if (const auto created = catalog::read_created(record)) restore(*created);
  const auto applied = apply_redo(world.thread, *world.map, record);
  if (!applied) {
    check_fault(applied.error());
    want(world.map->clock().taken() == taken, "what was refused has changed something");
    return;
  }
  const auto redo = read_hash_redo(record, kValueBytesMax);
  want(world.map->clock().released() >= redo->version, "a version can come again");
  const auto now = world.map->get(world.thread, redo->key);
  want(*now == (redo->op == RedoOp::put ? std::optional(std::string(redo->value)) : std::nullopt),
       "it is not as its record says");
}

void run(const std::uint8_t* data, std::size_t size) {
  World world;
  std::uint16_t bytes = 0;
  for (std::size_t at = 0; size - at >= sizeof bytes;) {
    std::memcpy(&bytes, data + at, sizeof bytes);
    at += sizeof bytes;
    const std::size_t record = std::min<std::size_t>(bytes, size - at);
    apply(world, data + at, record);
    at += record;
  }
  world.thread.cache->flush();
  check_whole(*world.map);
}

}  // namespace
}  // namespace espalier::hash

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::hash::run(data, size);
  return 0;
}
