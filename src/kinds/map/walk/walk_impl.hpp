// SPDX-License-Identifier: Apache-2.0
// The walk: one coroutine, shared by all operations at all places. Include where a Walker is
// instantiated.
//
// Code under `if constexpr (!kInPlace)` is for remote bytes: there page-table words must be read,
// fences and separators are requested only where they decide, and all reads are confirmed before
// their results are used.
#pragma once

#include "kinds/map/walk/lane_scan.hpp"

namespace espalier::tree {

template <class P>
base::WalkTask Walker<P>::walk(Lane& lane, A access) {
  for (;;) {
    co_await Next{this, &lane};
    bool prepared = prepare(lane);
    while (lane.starved) {
      while (!feed(lane)) co_await access.again();
      prepared = prepare(lane);
    }
    if (!prepared) continue;
    const bool empty =
        lane.goal != Goal::point && lane.goal != Goal::write && lane.scan.remaining == 0;
    bool going = !kInPlace || !empty;  // remote: an empty range still reads a version
    while (going) {
      const std::byte* header = nullptr;  // the map's, until the read version has arrived
      if constexpr (!kInPlace) {
        if (!lane.has_version) {
          // First the guard, then the read version, then node bytes (rule 2).
          const bool entered = co_await access.entered();
          if (!entered) {
            lane.answer.error = {Code::connection_lost, 0, 0};
            break;
          }
          header = access.map_header(map().header_offset);
          const bool in_order = access.reads_in_order() || planted(Bug::version_with_nodes);
          if (empty || !in_order) co_await access.arrived(Warmth::warm);
          if (empty && !access.failed()) {
            // No other READ follows; what it returned counts as confirmed.
            if (!take_version(lane, header)) {
              lane.answer.error = {Code::not_found, 0, 0};
              break;
            }
            const bool sure = co_await access.believed();
            going = !sure && restart(lane, Confirmed::lost);
            continue;
          }
        }
      }
      // Descend from the hint or the root to the leaf that may answer.
      wire::Ref ref = lane.hint;
      Warmth warmth = Warmth::cold;
      if (!ref) {
        ref = root_ref();
        warmth = Warmth::hot;
      }
      // Expect the root to be an interior node, as most are. Hints and neighbours are leaves.
      lane.level = lane.hint || lane.lid != 0 ? 0 : 1;
      lane.hint = {};
      const std::byte* image = nullptr;
      Confirmed lost = Confirmed::yes;
      std::uint32_t roots = 0;
      wire::Lid guessed = 0;             // the node by the cache; 0: by the page table
      bool look_up = false;              // bypass the cache once
      PointBytes brought;                // bytes of the leaf that were read with its head
      const std::byte* ahead = nullptr;  // the scan's next leaf, if it was read ahead
      bool by_key = false;               // read a node by key, once: not again if misled
      if constexpr (KeyedAccess<A>) by_key = begins_by_key(lane) && access.reads_by_key();
      for (std::uint32_t nodes = 0;; ++nodes) {
        [[maybe_unused]] wire::Lid lid = 0;
        if constexpr (!kInPlace) {
          if (access.failed()) {
            lost = Confirmed::lost;
            break;
          }
          if (lane.answer.error.code != Code::invalid) break;
          if (roots > kRootsMax || nodes > kNodesMax) {
            lost = Confirmed::changed;
            break;
          }
          if constexpr (KeyedAccess<A>) {
            if (by_key && nodes == 0) {
              image = access.node_by_key(lane.key);
              co_await access.arrived(Warmth::cold);
              if (access.failed()) continue;
              if (header != nullptr && !take_version(lane, std::exchange(header, nullptr))) {
                lane.answer.error = {Code::not_found, 0, 0};
                continue;
              }
              ref = NodeView(image, map().geometry).self_ref();
              by_key = ref && map().holds_node(ref);
              ref = by_key ? ref : wire::Ref{};
              if (by_key) access.came_to(ref);
            } else {
              by_key = false;
            }
          }
          if (!ref) {  // descend in the cache
            const bool follows = nodes == 0 && lane.lid != 0;
            lid = lane.lid != 0 ? std::exchange(lane.lid, 0) : map().root;
            guessed = 0;
            if constexpr (AheadAccess<A>) {
              if (follows && !lane.past_cache) {
                const LeafAhead known = access.take_ahead(lid);
                ref = known.ref;
                ahead = known.image;
                if (ref) guessed = lid;
                if (!ref && leaves_ahead(lane) != 0 && access.seeks_above(lane)) lid = map().root;
              }
            }
            if (!ref && lid == map().root) {
              lane.level = 1;
              ++roots;
            }
            if constexpr (kRemembers) {
              if (!ref && !std::exchange(look_up, false) && !lane.past_cache) {
                const CachedWay way = access.descend(lane, lid, lane.level);
                lid = way.lid;
                lane.level = way.level;
                lane.past_cache = way.misled;
                ref = way.ref;
                if (ref) guessed = lid;
              }
            }
          }
          if (!ref) {  // by the page table, whose words are read remotely
            const std::uint64_t named = map().directory_entry_offset(lid);
            if (named == 0) continue;
            std::uint64_t page = access.table_page(named);
            if (page == 0) {
              const std::byte* word = access.bytes(named, sizeof(std::uint64_t));
              co_await access.arrived(Warmth::warm);
              page = base::load_shared<std::uint64_t>(word, std::memory_order_acquire);
              if (access.failed() || page == 0 || page % wire::kBlockBytes != 0 ||
                  !map().holds(page, wire::kTablePageBytes)) {
                continue;
              }
              access.learn_table_page(named, page);
            }
            const std::byte* word =
                access.bytes(MapView::entry_in_page(page, lid), sizeof(wire::Ref));
            co_await access.arrived(Warmth::warm);
            if (access.failed()) continue;
            ref.bits = base::load_shared<std::uint64_t>(word, std::memory_order_acquire);
            if constexpr (kRemembers) access.learn_place(lid, ref);
          }
          if (!ref || !map().holds_node(ref)) {
            ref = {};
            continue;
          }
        }
        if (ahead != nullptr) {
          image = std::exchange(ahead, nullptr);
          lane.scan.whole_leaf = true;
        } else if (!by_key) {
          if constexpr (kRemembers) access.enter(ref, lid, lane.level);
          image = access.image(ref.offset());
          want_head(access, image, lane, warmth);
          if constexpr (kRemembers) brought = want_guess(access, image, lane, ref);
          want_ahead(access, lane, ref);
        } else if constexpr (KeyedAccess<A>) {
          lane.scan.whole_leaf = access.node_is_whole();
          brought =
              lane.scan.whole_leaf ? PointBytes{} : want_rest_of_point(access, image, lane, ref);
        }
        co_await access.arrived(warmth);
        const NodeView node(image, map().geometry);
        const NodeHead head = NodeHead::read(image);
        if constexpr (!kInPlace) {
          if (access.failed()) continue;
          if (header != nullptr && !take_version(lane, std::exchange(header, nullptr))) {
            lane.answer.error = {Code::not_found, 0, 0};  // the map was dropped
            continue;
          }
          if (head.leaf() && lane.level != 0) {  // it was expected to be an interior node
            if constexpr (kRemembers) access.enter(ref, lid, 0);
            const Geometry& g = map().geometry;
            if (g.sorted_begin > g.groups_begin) {
              access.want(image, g.groups_begin, g.sorted_begin - g.groups_begin);
            }
          }
          if (needs_fences(lane, head) && !lane.scan.whole_leaf &&
              brought.fences_begin > node.fence_begin()) {
            want_fences(access, node);
          }
          co_await access.arrived(warmth);
          if (access.failed()) continue;
        }
        Step step = visit(map(), lane, node, head, ref);
        if constexpr (KeyedAccess<A>) {
          // If the node was split since a table learned it, the upper half lies to the right.
          if (by_key && step.kind == StepKind::root) {
            lane.lid = right_of_leaf(map(), lane, node, head, ref);
            lane.level = lane.lid != 0 ? 0 : 1;
            ref = {};
            warmth = Warmth::cold;
            continue;
          }
        }
        if constexpr (kRemembers) {
          if (planted(Bug::cache_trusted) && guessed != 0 && head.leaf())
            step.kind = StepKind::leaf;
          // The cache misled the walk. If it had an old place of the node, look it up in the page
          // table.
          if (step.kind == StepKind::root) {
            look_up = guessed != 0 && is_another(map(), head, ref);
            lane.past_cache = !look_up;
            lane.lid = look_up ? guessed : 0;
          }
        }
        if (step.kind == StepKind::leaf) break;
        if (step.kind != StepKind::child) {
          ref = step.ref;
          if constexpr (kInPlace) {
            if (!ref) ref = root_ref();
          }
          warmth = Warmth::cold;
          continue;
        }
        const GroupChoice group = choose_group(node, head, lane.key, map().kit);
        if constexpr (kInPlace) {
          access.want(image, node.group_offset(group.first), sizeof(wire::ChildGroup));
        } else {
          want_group(access, node, lane, group);
        }
        co_await access.arrived(warmth);
        if constexpr (!kInPlace) {
          if (access.failed()) continue;
          if (!from_the_end(lane) && ties_among_children(node, group, map().kit)) {
            const std::uint32_t begin = std::min(head.sorted_end(), map().geometry.node_bytes);
            access.want(image, begin, map().geometry.node_bytes - begin);
            co_await access.arrived(warmth);
            if (access.failed()) continue;
          }
          if constexpr (kRemembers) access.learn_node(image);
        }
        warmth = head.level() == 1 ? Warmth::cold : Warmth::warm;
        const std::uint32_t child = child_of(lane, node, group, map().kit);
        if constexpr (kInPlace) {
          const std::uint64_t entry = map().entry_offset(node.child(child));
          const std::byte* at = access.bytes(entry, sizeof(wire::Ref));
          co_await access.arrived(Warmth::warm);
          ref.bits = base::load_shared<std::uint64_t>(at, std::memory_order_acquire);
          if (entry == 0 || !ref) ref = root_ref();
        } else {
          lane.lid = node.child(child);
          lane.level = head.level() != 0 ? head.level() - 1 : 0;
          ref = {};
        }
      }
      if constexpr (!kInPlace) {
        if (lane.answer.error.code != Code::invalid) break;
        if (lost != Confirmed::yes) {
          going = restart(lane, lost);
          continue;
        }
      }

      const NodeView leaf(image, map().geometry);
      if (lane.goal == Goal::point) {
        const LeafProbe probe = probe_leaf(leaf, lane.key, map().kit);
        bool at_hand = false;
        if constexpr (kRemembers) at_hand = brought.have(point_bytes(leaf, probe));
        if (!at_hand) want_leaf_part(access, leaf, lane, probe);
        if constexpr (kRemembers) {
          if (!at_hand) access.want_proof(ref);
        }
        co_await access.arrived(Warmth::cold);
        bool out_of_line = false;
        lane.answer.found =
            find_point(lane.key, leaf, probe, lane.read_version, lane.answer, out_of_line);
        const bool could = !out_of_line || begin_value(lane, lane.answer.value);
        Confirmed sure = co_await access.confirm(ref);
        if constexpr (kRemembers) {
          if (sure == Confirmed::yes) access.learn_leaf(image);
        }
        if (sure == Confirmed::yes && !could) sure = Confirmed::changed;
        if (sure == Confirmed::yes && out_of_line) {
          const wire::Ref at{lane.value.ref};
          const std::byte* value =
              access.bytes(at.offset(), sizeof(wire::ValueHeader) + lane.value.bytes);
          if constexpr (kRemembers) access.want_proof(at);
          co_await access.arrived(Warmth::cold);
          if (!planted(Bug::value_not_confirmed)) sure = co_await access.confirm(at);
          if (sure == Confirmed::yes && !value_is_whole(lane, value)) sure = Confirmed::changed;
          lane.answer.value = {reinterpret_cast<const char*>(value) + sizeof(wire::ValueHeader),
                               lane.value.bytes};
        }
        if constexpr (!kInPlace) {
          if (sure == Confirmed::yes && !co_await access.believed()) sure = Confirmed::lost;
        }
        if constexpr (SamplingAccess<A>) {
          if (sure == Confirmed::yes) access.answered(leaf.lid());
        }
        going = sure != Confirmed::yes && restart(lane, sure);
      } else if (lane.goal == Goal::write) {
        if constexpr (P::kWrites) {
          want_leaf_part(access, leaf, lane, probe_leaf(leaf, lane.key, map().kit));
          co_await access.arrived(Warmth::cold);
          std::uint64_t wait_for = 0;
          WriteStep step = place_.write(lane, ref, wait_for);
          while (step == WriteStep::try_again) {
            co_await access.again();
            step = place_.write(lane, ref, wait_for);
          }
          if (step == WriteStep::out_of_memory) {
            place_.guard().end(lane.tick);
            if (starve(lane)) {
              while (!feed(lane)) co_await access.again();
            }
            lane.tick = place_.guard().begin();
            lane.read_version = kNewest;
          }
          while (step == WriteStep::decided && !place_.may_answer(wait_for, lane.answer)) {
            co_await access.again();
          }
          going = step != WriteStep::decided;
        }
      } else {
        if constexpr (kInPlace) {
          want_scan_part(access, leaf, lane);
        } else {
          want_window(access, leaf, lane);
          co_await access.arrived(Warmth::cold);
          if (!access.failed()) want_bound(access, leaf, lane);
        }
        co_await access.arrived(Warmth::cold);
        Confirmed sure = co_await access.confirm(ref);
        if constexpr (kRemembers) {
          if (sure == Confirmed::yes) access.learn_leaf(image);
        }
        if constexpr (!kInPlace) {
          if (sure == Confirmed::yes && !co_await access.believed()) sure = Confirmed::lost;
        }
        bool over = false;
        if (sure == Confirmed::yes) {
          if constexpr (SamplingAccess<A>) access.answered(leaf.lid());
          if constexpr (kInPlace) {
            begin_scan(lane, leaf);
          } else {
            begin_window(lane, leaf);
          }
        }
        for (bool more = sure == Confirmed::yes; more && !over && sure == Confirmed::yes;) {
          const auto room = static_cast<std::uint32_t>(
              std::min<std::uint64_t>(std::size(lane.scan.items), lane.scan.remaining));
          std::uint64_t out_of_line = 0;
          const std::uint32_t count = take_items(lane, room, out_of_line);
          std::uint32_t first = 0;  // not delivered yet
          for (; out_of_line != 0 && !over; out_of_line &= out_of_line - 1) {
            const auto last = static_cast<std::uint32_t>(std::countr_zero(out_of_line));
            Item& item = lane.scan.items[last];
            if constexpr (!kInPlace) {  // deliver the items before it now
              if (last != first) over = !deliver(lane, {lane.scan.items + first, last - first});
              first = last;
              if (over) break;
            }
            const bool could = begin_value(lane, item.value);
            const wire::Ref at{lane.value.ref};
            const std::byte* value = nullptr;
            if (could) {
              value = access.bytes(at.offset(), sizeof(wire::ValueHeader) + lane.value.bytes);
              co_await access.arrived(Warmth::cold);
              if (!planted(Bug::value_not_confirmed)) sure = co_await access.confirm(at);
              if constexpr (!kInPlace) {
                if (sure == Confirmed::yes && !co_await access.believed()) sure = Confirmed::lost;
              }
            }
            if (sure == Confirmed::yes && (!could || !value_is_whole(lane, value))) {
              sure = Confirmed::changed;
            }
            if (sure != Confirmed::yes) break;
            item.value = {reinterpret_cast<const char*>(value) + sizeof(wire::ValueHeader),
                          lane.value.bytes};
            if constexpr (!kInPlace) {  // the bytes are valid only until the next request
              over = !deliver(lane, {lane.scan.items + first, last + 1 - first});
              first = last + 1;
            }
          }
          if (sure != Confirmed::yes) {
            resume_scan_at(lane, lane.scan.items[first].key);
            break;
          }
          over = over || !deliver(lane, {lane.scan.items + first, count - first});
          more = count == room;
          if constexpr (!kInPlace) {
            if (more || over || !want_rest(access, leaf, lane)) continue;
            co_await access.arrived(Warmth::cold);
            if (!planted(Bug::rest_not_confirmed)) sure = co_await access.confirm(ref);
            if (sure == Confirmed::yes && !co_await access.believed()) sure = Confirmed::lost;
            more = sure == Confirmed::yes;
            if (more) {
              begin_window(lane, leaf);
            } else if (!lane.scan.delivered.empty()) {
              resume_scan_behind(lane, lane.scan.delivered);
            }
          }
        }
        if (sure != Confirmed::yes) {
          going = restart(lane, sure);
        } else if (over || !leave_leaf(lane, leaf)) {
          going = next_leg(lane);
        }
      }
    }
    complete(lane);
  }
}

}  // namespace espalier::tree
