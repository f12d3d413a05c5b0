// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/one_sided_opening.hpp"

#include "channel/one_sided/opening_fields.hpp"

namespace espalier::client {
namespace {

// None, if the prefix is truncated, or longer than keys may be.
std::optional<OneSidedOpening::Keyed> keyed_of(std::string_view content) {
  wire::KeyedPlace place{};
  if (!take_field(place, content)) return std::nullopt;
  content.remove_prefix(sizeof place);
  if (place.prefix_bytes > content.size() || place.prefix_bytes > wire::kKeyBytesMax) {
    return std::nullopt;
  }
  return OneSidedOpening::Keyed{place.key, std::string(content.substr(0, place.prefix_bytes))};
}

// None, if they are truncated, or no shard can have them.
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

}  // namespace

Result<wire::FeedPlace> read_feed_place(std::string_view payload) {
  return only_field<wire::FeedPlace>(wire::FieldKind::feed, payload);
}

Result<wire::RedirectPlace> read_redirect_place(std::string_view payload) {
  return only_field<wire::RedirectPlace>(wire::FieldKind::redirect, payload);
}

Result<OneSidedOpening> OneSidedOpening::read(std::string_view payload) {
  OneSidedOpening opening;
  bool has_map = false;
  const auto opened = read_opening(payload, [&](const OpeningField& field) -> Result<void> {
    const std::string_view content = field.content;
    switch (field.kind) {
      case wire::FieldKind::map: has_map |= take_field(opening.map, content); break;
      case wire::FieldKind::keyed: opening.keyed = keyed_of(content); break;
      case wire::FieldKind::redirect:
        opening.redirect.emplace();
        if (!take_field(*opening.redirect, content)) opening.redirect.reset();
        break;
      case wire::FieldKind::borders:
        opening.borders = borders_of(content);
        if (!opening.borders) return fail(Code::corrupt, kOpeningBorders);
        break;
      default: break;
    }
    return {};
  });
  if (!opened) return std::unexpected(opened.error());
  if (!has_map) return fail(Code::corrupt, kOpeningCut);
  opening.region = opened->region;
  opening.lease = opened->lease;
  return opening;
}

Result<tree::MapView> OneSidedOpening::view_of(std::uint32_t map_id) const {
  auto view = tree::MapView::read(map.header, map.header_offset, region.bytes, nullptr);
  if (!view) return view;
  if (view->id != map_id || lease.lease == 0) return fail(Code::corrupt, kOpeningNotAsked);
  return view;
}

}  // namespace espalier::client
