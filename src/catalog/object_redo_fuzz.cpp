// SPDX-License-Identifier: Apache-2.0
// Decodes arbitrary bytes as `created`, `dropped`, `renamed` and client records: what is read lies
// within the bytes, and encodes to the same bytes again.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "catalog/client_record.hpp"
#include "catalog/object_redo.hpp"
#include "catalog/testing/recording_sink.hpp"

namespace espalier::catalog {
namespace {

using base::want;

void run(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a read past the end is detected
  if (size != 0) std::memcpy(exact.get(), data, size);
  const std::string_view record(exact.get(), size);
  if (const auto client = read_client_record(record)) {
    std::vector<std::byte> again(size);
    write_client_record(again, client->fields, client->bytes);
    want(std::memcmp(again.data(), record.data(), size) == 0, "written again it is another record");
    return;
  }
  RecordingSink sink;
  if (const auto created = read_created(record)) {
    RedoRoom room = *reserve_created(&sink, *created);
    finish_created(room, created->id);
  } else if (const auto dropped = read_dropped(record)) {
    RedoRoom room = *reserve_dropped(&sink);
    finish_dropped(room, *dropped);
  } else if (const auto renamed = read_renamed(record)) {
    RedoRoom room = *reserve_renamed(&sink, *renamed);
    finish_renamed(room, *renamed);
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
