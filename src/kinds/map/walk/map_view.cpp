// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/walk/map_view.hpp"

#include "wire/group_clock.hpp"

namespace espalier::tree {
namespace {

enum Fault : std::uint32_t {
  kNoHeader = 1,
  kNotLive = 2,
  kGeometry = 3,
  kOutside = 4,
  kNoClock = 5,
};

}  // namespace

Result<MapView> MapView::read(const wire::MapHeader& header, std::uint64_t header_offset,
                              std::uint64_t region_bytes, const std::byte* memory) {
  if (header.magic != wire::kMapMagic) return fail(Code::corrupt, kNoHeader);
  // Another program's map, which is older or newer than this one.
  if (header.format != wire::kMapFormat) return fail(Code::unsupported, header.format);
  if (header.superseded != wire::kLive || header.map_id == 0) return fail(Code::corrupt, kNotLive);
  const MapOptions options{.node_bytes = header.node_bytes, .log_bytes = header.log_bytes};
  if (!Geometry::valid(options) || header.versions > 1) return fail(Code::corrupt, kGeometry);
  MapView view;
  view.memory = memory;
  view.region_bytes = region_bytes;
  view.id = header.map_id;
  view.header_generation = header.generation;
  view.header_offset = header_offset;
  view.directory_offset = header.directory_offset;
  view.clock_offset = header.clock_offset;
  view.root = header.root;
  view.versions = header.versions != 0;
  view.geometry = Geometry::of(options);
  const bool table_inside = header.directory_offset % wire::kBlockBytes == 0 &&
                            view.holds(header.directory_offset, wire::kDirectoryBytes);
  if (!table_inside || view.directory_entry_offset(header.root) == 0) {
    return fail(Code::corrupt, kOutside);
  }
  if (!wire::is_clock_place(header.clock_offset, region_bytes)) {
    return fail(Code::corrupt, kNoClock);
  }
  return view;
}

}  // namespace espalier::tree
