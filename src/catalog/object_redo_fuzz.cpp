// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as records of objects that were made or dropped: what is read lies within them,
// and written again it is the same bytes.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "catalog/object_redo.hpp"
#include "catalog/testing/recording_sink.hpp"

namespace espalier::catalog {
namespace {

using base::want;

void run(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a byte too far is seen
  if (size != 0) std::memcpy(exact.get(), data, size);
  const std::string_view record(exact.get(), size);
  RecordingSink sink;
  if (const auto created = read_created(record)) {
    RedoRoom room = *reserve_created(&sink, created->kind, created->name, created->form);
    finish_created(room, created->id);
  } else if (const auto dropped = read_dropped(record)) {
    RedoRoom room = *reserve_dropped(&sink);
    finish_dropped(room, static_cast<ObjectKind>(record[12]), *dropped);
  } else {
    want(created.error().code == Code::corrupt, "another error than corrupt");
    want(!text_of(static_cast<RedoFault>(created.error().detail)).empty(), "a fault without words");
    return;
  }
  want(sink.records().front() == record, "written again it is another record");
}

}  // namespace
}  // namespace espalier::catalog

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::catalog::run(data, size);
  return 0;
}
