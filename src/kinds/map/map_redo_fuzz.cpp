// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a record of a map, or of the creation of one. Parsed views lie within the
// input, applied records leave a consistent map, and rejected records change nothing.
//
// Input: records, each behind its length in 2 bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "catalog/object_redo.hpp"
#include "kinds/map/redo_record.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "kinds/map/write/apply_redo.hpp"

namespace espalier::tree {
namespace {

using base::want;

void check(const Error& error) {
  want(error.code == Code::corrupt, "another error than corrupt");
  want(!text_of(static_cast<catalog::RedoFault>(error.detail)).empty(), "a fault without words");
}

// Records of a map's creation.
void restore(const catalog::CreatedObject& created) {
  StoreCore store = make_store(std::uint64_t{64} << 20);
  const auto made = restore_map(store, created);
  if (!made) return check(made.error());
  want((*made)->id == created.id && (*made)->name == created.name, "another map");
  want(audit(**made).empty(), "the map is not whole");
}

void apply(TreeFixture& tree, const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // a read beyond the end is detected
  if (size != 0) std::memcpy(exact.get(), data, size);
  const std::uint64_t taken = tree.map().clock.taken();
  const std::string_view record(exact.get(), size);
  if (const auto created = catalog::read_created(record)) restore(*created);
  const auto applied = apply_redo(tree.context(), tree.map(), record);
  if (applied) {
    want(tree.map().clock.released() >= read_map_redo(record)->version, "a version can come again");
    return;
  }
  check(applied.error());
  want(tree.map().clock.taken() == taken, "what was refused has changed something");
}

void run(const std::uint8_t* data, std::size_t size) {
  TreeFixture tree({.node_bytes = 512});
  std::uint16_t bytes = 0;
  for (std::size_t at = 0; size - at >= sizeof bytes;) {
    std::memcpy(&bytes, data + at, sizeof bytes);
    at += sizeof bytes;
    const std::size_t record = std::min<std::size_t>(bytes, size - at);
    apply(tree, data + at, record);
    at += record;
  }
  const std::vector<std::string> wrong = audit(tree.map());
  want(wrong.empty(), wrong.empty() ? "" : wrong.front().c_str());
}

}  // namespace
}  // namespace espalier::tree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::tree::run(data, size);
  return 0;
}
