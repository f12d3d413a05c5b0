// SPDX-License-Identifier: Apache-2.0
#include "kinds/region/execute.hpp"

#include <span>
#include <string>

#include "kinds/region/region_object.hpp"

namespace espalier::region_calls {
namespace {

using region::RegionObject;

Result<Word> word_in(const Result<std::uint64_t>& before) {
  if (!before) return std::unexpected(before.error());
  return Word{*before};
}

}  // namespace

Result<std::shared_ptr<RegionObject>> obtain(catalog::Catalog& catalog, const Create& asked) {
  return region::create_region(catalog, asked.name, asked.bytes);
}

Result<std::shared_ptr<RegionObject>> obtain(catalog::Catalog& catalog, const Open& asked) {
  return catalog.open<RegionObject>(asked.name);
}

Result<Bytes> execute(const RegionObject& of, const Read& asked) {
  std::string bytes(asked.range.bytes, '\0');
  const auto read = of.read(asked.range.offset, std::as_writable_bytes(std::span(bytes)));
  if (!read) return std::unexpected(read.error());
  return Bytes{wire::OwnBytes(bytes)};
}

Result<wire::Nothing> execute(RegionObject& of, const Write& asked) {
  const auto written = of.write(asked.offset, std::as_bytes(std::span(asked.bytes)));
  if (!written) return std::unexpected(written.error());
  return wire::Nothing{};
}

Result<Word> execute(RegionObject& of, const FetchAdd& asked) {
  return word_in(of.fetch_add(asked.offset, asked.amount));
}

Result<Word> execute(RegionObject& of, const CompareSwap& asked) {
  return word_in(of.compare_swap(asked.how.offset, asked.how.compare, asked.how.swap));
}

}  // namespace espalier::region_calls
