// SPDX-License-Identifier: Apache-2.0
#include "client/one_sided_opening.hpp"

#include <cstring>

namespace espalier::client {
namespace {

enum Fault : std::uint32_t { kCut = 1, kNotAsked = 2, kOutside = 3, kBorders = 4 };

// Takes a field that is long enough; of two the later one counts.
template <class T>
bool take_field(T& to, std::string_view content) {
  if (content.size() < sizeof(T)) return false;
  std::memcpy(&to, content.data(), sizeof to);
  return true;
}

// None, if its prefix is cut, or longer than keys are.
std::optional<OneSidedOpening::Keyed> keyed_of(std::string_view content) {
  wire::KeyedPlace place{};
  if (!take_field(place, content)) return std::nullopt;
  content.remove_prefix(sizeof place);
  if (place.prefix_bytes > content.size() || place.prefix_bytes > wire::kKeyBytesMax) {
    return std::nullopt;
  }
  return OneSidedOpening::Keyed{place.key, std::string(content.substr(0, place.prefix_bytes))};
}

// Nothing: they are cut, or no shard's.
std::optional<OneSidedOpening::Borders> borders_of(std::string_view content) {
  wire::ShardBorders sizes{};
  if (!take_field(sizes, content)) return std::nullopt;
  content.remove_prefix(sizeof sizes);
  if (sizes.low_bytes > wire::kKeyBytesMax || sizes.high_bytes > wire::kKeyBytesMax ||
      sizes.low_bytes + sizes.high_bytes > content.size()) {
    return std::nullopt;
  }
  OneSidedOpening::Borders borders{std::string(content.substr(0, sizes.low_bytes)),
                                   std::string(content.substr(sizes.low_bytes, sizes.high_bytes))};
  if (!borders.high.empty() && borders.high <= borders.low) return std::nullopt;
  return borders;
}

struct Field {
  wire::FieldKind kind = wire::FieldKind::invalid;
  std::string_view content;
};

// Takes the first field off the payload. Nothing: it is cut.
std::optional<Field> next_field(std::string_view& payload) {
  wire::FieldHeader header;
  if (payload.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, payload.data(), sizeof header);
  payload.remove_prefix(sizeof header);
  const std::uint64_t padded = (std::uint64_t{header.bytes} + 7) & ~std::uint64_t{7};
  if (padded > payload.size()) return std::nullopt;
  const Field field{static_cast<wire::FieldKind>(header.kind), payload.substr(0, header.bytes)};
  payload.remove_prefix(padded);
  return field;
}

// The one field of this kind, among others that do not matter.
template <class T>
Result<T> only_field(wire::FieldKind kind, std::string_view payload) {
  T found{};
  bool has_it = false;
  while (!payload.empty()) {
    const auto field = next_field(payload);
    if (!field) return fail(Code::corrupt, kCut);
    if (field->kind == kind) has_it |= take_field(found, field->content);
  }
  if (!has_it) return fail(Code::corrupt, kCut);
  return found;
}

}  // namespace

Result<wire::FeedPlace> read_feed_place(std::string_view payload) {
  return only_field<wire::FeedPlace>(wire::FieldKind::feed, payload);
}

Result<wire::RedirectPlace> read_redirect_place(std::string_view payload) {
  return only_field<wire::RedirectPlace>(wire::FieldKind::redirect, payload);
}

Result<OneSidedOpening> OneSidedOpening::read(std::string_view payload) {
  OneSidedOpening opening;
  bool has_region = false;
  bool has_object = false;
  bool has_lease = false;
  while (!payload.empty()) {
    const auto field = next_field(payload);
    if (!field) return fail(Code::corrupt, kCut);
    const std::string_view content = field->content;
    switch (field->kind) {
      case wire::FieldKind::region: has_region |= take_field(opening.region, content); break;
      case wire::FieldKind::map: has_object |= take_field(opening.map, content); break;
      case wire::FieldKind::table: has_object |= take_field(opening.table, content); break;
      case wire::FieldKind::lease: has_lease |= take_field(opening.lease, content); break;
      case wire::FieldKind::keyed: opening.keyed = keyed_of(content); break;
      case wire::FieldKind::redirect:
        opening.redirect.emplace();
        if (!take_field(*opening.redirect, content)) opening.redirect.reset();
        break;
      case wire::FieldKind::borders:
        opening.borders = borders_of(content);
        if (!opening.borders) return fail(Code::corrupt, kBorders);
        break;
      default: break;
    }
  }
  if (!has_region || !has_object || !has_lease) return fail(Code::corrupt, kCut);
  return opening;
}

Result<tree::MapView> OneSidedOpening::view_of(std::uint32_t map_id) const {
  auto view = tree::MapView::read(map.header, map.header_offset, region.bytes, nullptr);
  if (!view) return view;
  if (view->id != map_id || lease.lease == 0) return fail(Code::corrupt, kNotAsked);
  return view;
}

Result<wire::TablePlace> OneSidedOpening::place_of(std::uint32_t table_id) const {
  if (table.table_id != table_id || table_id == 0 || lease.lease == 0) {
    return fail(Code::corrupt, kNotAsked);
  }
  const std::uint64_t end = region.bytes;
  const bool inside = end >= wire::kTableHeaderBytes &&
                      table.header_offset <= end - wire::kTableHeaderBytes &&
                      table.header_offset % wire::kBlockBytes == 0;
  if (!inside) return fail(Code::corrupt, kOutside);
  return table;
}

}  // namespace espalier::client
