// SPDX-License-Identifier: Apache-2.0
// What a map has besides its nodes, and the memory of all maps against what the pool handed out.
#include <algorithm>
#include <array>

#include "kinds/map/write/audit.hpp"
#include "kinds/map/write/audit_parts.hpp"
#include "store/clock_groups.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {
namespace {

// A buffer that is no node: whose it is, and that it is in use.
void audit_owner(const MapCore& map, std::uint64_t offset, std::string_view what, Report& report) {
  const auto header = base::load_plain<wire::BufferHeader>(map.at(offset));
  report.expect(header.map_id == map.id, what, " belongs to map ", header.map_id);
  report.expect(header.superseded == wire::kLive, what, " is not live");
  report.expect(header.created == wire::kNoNode, what, " could pass for a node");
}

}  // namespace

void audit_map_header(const MapCore& map, Report& report) {
  // Of a map that was dropped, and is still held, it says so.
  if (!map.dropped) audit_owner(map, map.header_offset, "the map's header", report);
  const auto header = base::load_plain<wire::MapHeader>(map.at(map.header_offset));
  report.expect(header.magic == wire::kMapMagic && header.format == wire::kMapFormat,
                "the map's header is of another format");
  report.expect(header.node_bytes == map.options.node_bytes &&
                    header.log_bytes == map.options.log_bytes &&
                    header.versions == (map.options.versions ? 1u : 0u),
                "the map's header has other options");
  report.expect(header.root == map.root && header.directory_offset == map.table.directory_offset(),
                "the map's header names another root or page table");
  const bool own = map.group->clock() == nullptr;
  const std::uint64_t place = own ? map.header_offset + offsetof(wire::MapHeader, read_version)
                                  : map.group->clock()->place();
  report.expect(header.clock_offset == place && map.clock_offset == place,
                "the map's header names another clock");
  report.expect(own || (header.read_version == 0 && header.write_version == 0),
                "the map's header has versions beside those of its group");
  report.expect(map.clock.released() == map.clock.taken(), "version ", map.clock.taken(),
                " was taken and ", map.clock.released(), " is the newest released");
}

void audit_counters(const MapCore& map, const TreeContent& content, Report& report) {
  report.expect(map.items.sum() == content.items, "the counter of items says ", map.items.sum(),
                " and there are ", content.items);
  report.expect(map.leaves == content.leaves, "the counter of leaves says ", map.leaves.load(),
                " and there are ", content.leaves);
  report.expect(map.interior_nodes == content.interior_nodes, "the counter of interior nodes says ",
                map.interior_nodes.load(), " and there are ", content.interior_nodes);
  report.expect(map.value_bytes == content.value_bytes, "the counter of value bytes says ",
                map.value_bytes.load(), " and there are ", content.value_bytes);
}

void audit_lids(const MapCore& map, const memory::Reclaimer::Waiting& waiting,
                const TreeContent& content, Report& report) {
  report.expect(content.lids.size() + waiting.ids == map.table.in_use(), "the page table has ",
                map.table.in_use(), " LIDs in use, the tree has ", content.lids.size(), " and ",
                waiting.ids, " wait");
  std::vector<wire::Lid> known = content.lids;
  for (const memory::Retired& one : waiting.buffers) {
    if (one.id != 0) known.push_back(one.id);
  }
  std::sort(known.begin(), known.end());
  report.expect(std::adjacent_find(known.begin(), known.end()) == known.end(),
                "a LID that waits to be free is in the tree");
  const auto buffers = map.table.buffers();
  audit_owner(map, buffers.front().first, "the page table's directory", report);
  for (std::size_t page = 1; page < buffers.size(); ++page) {  // pages follow the directory
    const std::uint64_t offset = buffers[page].first;
    if (buffers[page].second == buffers.front().second) {  // the mapping feed, behind all pages
      audit_owner(map, offset, "the mapping feed", report);
      continue;
    }
    audit_owner(map, offset, "a page of the page table", report);
    const auto first =
        static_cast<wire::Lid>((page - 1 + wire::kHeaderWords) << wire::kTablePageShift);
    for (wire::Lid i = wire::kHeaderWords; i < wire::kTablePageEntries; ++i) {
      const bool used = base::load_plain<std::uint64_t>(map.at(offset) + std::size_t{8} * i) != 0;
      report.expect(!used || std::binary_search(known.begin(), known.end(), first + i), "LID ",
                    first + i, " names a buffer, is not in the tree and does not wait");
    }
  }
}

void audit_waiting(const MapCore& map, const memory::Reclaimer::Waiting& waiting,
                   TreeContent& content, Report& report) {
  std::uint64_t bytes = 0;
  for (const memory::Retired& one : waiting.buffers) bytes += memory::class_bytes(one.size_class);
  report.expect(waiting.bytes == bytes, "the counter of retired bytes says ", waiting.bytes,
                " and there are ", bytes);
  for (const memory::Retired& one : waiting.buffers) {
    content.buffers.push_back({one.offset, one.size_class});
    report.expect(one.version <= map.clock.taken(), "a buffer waits for a version not taken yet");
    const auto header = base::load_plain<wire::BufferHeader>(map.at(one.offset));
    report.expect(header.map_id == map.id, "a waiting buffer belongs to map ", header.map_id);
    // Values are found through their items alone and stay live until they are free.
    const std::uint64_t ended = std::max<std::uint64_t>(one.version, 1);
    report.expect(header.superseded == ended || (header.superseded == wire::kLive && one.id == 0),
                  "a waiting buffer was not superseded by the version that retired it");
  }
}

void audit_overlaps(std::vector<BufferUse>& buffers, Report& report) {
  std::sort(buffers.begin(), buffers.end(),
            [](const BufferUse& a, const BufferUse& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < buffers.size(); ++i) {
    const BufferUse& before = buffers[i - 1];
    report.expect(before.offset + memory::class_bytes(before.size_class) <= buffers[i].offset,
                  "two buffers share the bytes at offset ", buffers[i].offset);
  }
}

void audit_pool(const StoreCore& store, std::span<const BufferUse> buffers, Report& report) {
  std::array<std::uint64_t, memory::kClasses> used{};
  for (const BufferUse& buffer : buffers) ++used[buffer.size_class];
  for (const store::StoredObject* object : store.objects.list<store::StoredObject>()) {
    object->add_values(used);
  }
  used[store::ClockGroups::kClass] += store.groups->buffers().size();
  for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls) {
    const memory::BufferKind kind = memory::kind_of(cls);
    if (kind >= memory::BufferKind::relation) continue;  // no part of any ordered map
    const memory::ClassStats stats = store.pool.stats(cls);
    const std::uint64_t bytes = memory::class_bytes(cls);
    report.expect(stats.in_use + stats.free == stats.taken, "of ", stats.taken, " buffers of ",
                  bytes, " bytes ", stats.in_use, " are in use and ", stats.free, " free");
    report.expect(used[cls] == stats.in_use, stats.in_use, " buffers of ", bytes,
                  " bytes are handed out, and maps have ", used[cls]);
  }
}

}  // namespace espalier::tree
