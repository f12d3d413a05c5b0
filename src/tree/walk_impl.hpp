// SPDX-License-Identifier: Apache-2.0
// The walk: the one coroutine that all operations of all places share. Included where an Engine is
// instantiated.
#pragma once

#include "tree/group.hpp"
#include "tree/lane_scan.hpp"

namespace espalier::tree {

template <Access A>
base::WalkTask Engine<A>::walk(Lane& lane, A access) {
  for (;;) {
    co_await Next{this, &lane};
    bool prepared = prepare(lane);
    while (lane.starved) {
      while (!feed(lane)) co_await access.again();
      prepared = prepare(lane);
    }
    if (!prepared) continue;
    bool going = lane.goal == Goal::point || lane.goal == Goal::write || lane.scan.remaining != 0;
    while (going) {
      // Down to the leaf that may answer, from the hint or from the root.
      wire::Ref ref = lane.hint;
      Warmth warmth = Warmth::cold;
      if (!ref) {
        ref = root_ref();
        warmth = Warmth::hot;
      }
      lane.hint = {};
      const std::byte* image = nullptr;
      for (;;) {
        if constexpr (!A::kInPlace) {
          while (!ref) {  // by way of the page table, whose words are brought like all else
            const wire::Lid lid = lane.lid != 0 ? std::exchange(lane.lid, 0) : map_.root;
            const std::uint64_t named = map_.table.directory_entry_offset(lid);
            if (named == 0) continue;
            const std::byte* word = access.bytes(named, sizeof(std::uint64_t));
            co_await access.arrived(Warmth::warm);
            const auto page = base::load_shared<std::uint64_t>(word, std::memory_order_acquire);
            if (page == 0) continue;
            word = access.bytes(PageTable::entry_in_page(page, lid), sizeof(wire::Ref));
            co_await access.arrived(Warmth::warm);
            ref.bits = base::load_shared<std::uint64_t>(word, std::memory_order_acquire);
          }
        }
        image = access.image(ref.offset());
        want_head(access, image, lane, warmth);
        co_await access.arrived(warmth);
        const NodeView node(image, map_.geometry);
        if constexpr (!A::kInPlace) {
          want_fences(access, node, lane);
          co_await access.arrived(warmth);
        }
        const NodeHead head = NodeHead::read(image);
        const Judgement judgement = judge(lane, node, head, ref);
        if (!judgement.answers) {
          ref = judgement.next;
          warmth = Warmth::cold;
          continue;
        }
        if (head.leaf()) break;
        const GroupChoice group = choose_group(node, head, lane.key, map_.kit);
        if constexpr (A::kInPlace) {
          access.want(image, node.group_offset(group.first), sizeof(wire::ChildGroup));
        } else {  // separators too: they decide ties
          access.want(image, map_.geometry.groups_begin,
                      map_.geometry.node_bytes - map_.geometry.groups_begin);
        }
        co_await access.arrived(warmth);
        warmth = head.level() == 1 ? Warmth::cold : Warmth::warm;
        const std::uint32_t child = lane.goal == Goal::backward
                                        ? choose_child_descending(node, lane.key)
                                        : choose_child(node, lane.key, group, map_.kit);
        if constexpr (A::kInPlace) {
          const std::uint64_t entry = map_.table.entry_offset(node.child(child));
          const std::byte* at = access.bytes(entry, sizeof(wire::Ref));
          co_await access.arrived(Warmth::warm);
          ref.bits = base::load_shared<std::uint64_t>(at, std::memory_order_acquire);
          if (entry == 0 || !ref) ref = root_ref();
        } else {
          lane.lid = node.child(child);
          ref = {};
        }
      }

      const NodeView leaf(image, map_.geometry);
      if (lane.goal == Goal::point) {
        const LeafProbe probe = probe_leaf(leaf, lane.key, map_.kit);
        want_leaf_part(access, leaf, lane, probe);
        co_await access.arrived(Warmth::cold);
        bool out_of_line = false;
        lane.answer.found =
            find_point(lane.key, leaf, probe, lane.read_version, lane.answer, out_of_line);
        if (!co_await access.confirm(ref)) continue;
        if (out_of_line) {
          std::memcpy(&lane.value, lane.answer.value.data(), sizeof lane.value);
          const std::byte* value = access.bytes(wire::Ref{lane.value.ref}.offset(),
                                                sizeof(wire::ValueHeader) + lane.value.bytes);
          co_await access.arrived(Warmth::cold);
          if (!co_await access.confirm(wire::Ref{lane.value.ref})) continue;
          lane.answer.value = {reinterpret_cast<const char*>(value) + sizeof(wire::ValueHeader),
                               lane.value.bytes};
        }
        going = false;
      } else if (lane.goal == Goal::write) {
        want_leaf_part(access, leaf, lane, probe_leaf(leaf, lane.key, map_.kit));
        co_await access.arrived(Warmth::cold);
        if (!co_await access.confirm(ref)) continue;
        std::uint64_t wait_for = 0;
        WriteStep step = write_here(lane, ref, wait_for);
        while (step == WriteStep::try_again) {
          co_await access.again();
          step = write_here(lane, ref, wait_for);
        }
        if (step == WriteStep::starved) {
          while (!feed(lane)) co_await access.again();
          pin(lane);
          lane.read_version = kNewest;
        }
        while (step == WriteStep::decided && map_.clock.released() < wait_for) {
          co_await access.again();
        }
        going = step != WriteStep::decided;
      } else {
        want_scan_part(access, leaf, lane);
        co_await access.arrived(Warmth::cold);
        if (!co_await access.confirm(ref)) continue;
        begin_scan(lane, leaf);
        bool over = false;
        for (bool more = true; more && !over;) {
          const auto room = static_cast<std::uint32_t>(
              std::min<std::uint64_t>(std::size(lane.scan.items), lane.scan.remaining));
          std::uint64_t out_of_line = 0;
          const std::uint32_t count = take_items(lane, room, out_of_line);
          std::uint32_t first = 0;  // not delivered yet
          for (; out_of_line != 0 && !over; out_of_line &= out_of_line - 1) {
            const auto last = static_cast<std::uint32_t>(std::countr_zero(out_of_line));
            Item& item = lane.scan.items[last];
            std::memcpy(&lane.value, item.value.data(), sizeof lane.value);
            const std::byte* value = access.bytes(wire::Ref{lane.value.ref}.offset(),
                                                  sizeof(wire::ValueHeader) + lane.value.bytes);
            co_await access.arrived(Warmth::cold);
            item.value = {reinterpret_cast<const char*>(value) + sizeof(wire::ValueHeader),
                          lane.value.bytes};
            if constexpr (!A::kInPlace) {  // these bytes stay only until the next ones are wanted
              over = !deliver(lane, {lane.scan.items + first, last + 1 - first});
              first = last + 1;
            }
          }
          over = over || !deliver(lane, {lane.scan.items + first, count - first});
          more = count == room;
        }
        if (over || !leave_leaf(lane, leaf)) going = next_leg(lane);
      }
    }
    complete(lane);
  }
}

}  // namespace espalier::tree
