// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of query lists, of groups, or of parts: it is refused in words, or what was
// read names rows that there are.
//
// The first byte chooses the format and the size of the pieces in which the bytes arrive.
#include <cstdlib>
#include <string>

#include "kinds/embedding/memo_numbering.hpp"
#include "tools/query_list_files.hpp"
#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

constexpr std::uint64_t kRows = 100;

void require_that(bool holds) {
  if (!holds) std::abort();
}

void read_as_lists(MemorySource& source, QueryFormat format) {
  const auto file = read_query_lists(source, format, kRows);
  if (!file) return require_that(!file.error().empty());
  for (const std::uint32_t id : file->lists.ids()) require_that(id < kRows);
  require_that(!embedding::fault_of_groups(file->groups.get(), kRows));
}

void run(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  MemorySource source(text, 1 + data[0] / 4u);
  switch (data[0] % 4) {
    case 0: return read_as_lists(source, QueryFormat::lists);
    case 1: return read_as_lists(source, QueryFormat::merci);
    case 2: {
      const auto groups = read_groups(source, kRows);
      return require_that(groups ? !embedding::fault_of_groups(groups->get(), kRows)
                                 : !groups.error().empty());
    }
    default: {
      const auto parts = read_partition(source, kRows);
      if (!parts) return require_that(!parts.error().empty());
      for (const std::uint32_t part : parts->of_item) {
        require_that(part < parts->count || part == embedding::Communities::kNone);
      }
    }
  }
}

}  // namespace
}  // namespace espalier::tools

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::tools::run(data, size);
  return 0;
}
