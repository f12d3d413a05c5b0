// SPDX-License-Identifier: Apache-2.0
#include "engine/store_copy.hpp"

#include <new>
#include <utility>

#include "engine/planted_engine_bugs.hpp"
#include "engine/redo_target.hpp"

namespace espalier::offload {
namespace {

void add_dropped(CopyPiece& piece, const catalog::DroppedObject& object) {
  const auto room = piece.add(sizeof(catalog::RedoHead));
  if (!room.empty()) catalog::write_dropped(room, object);
}

}  // namespace

// The sequence is taken first: later records are applied after the copy.
StoreCopy::StoreCopy(Services& services, std::span<const Kind> own, std::uint64_t sequence)
    : services_(services), own_(own), sequence_(sequence) {
  catalog::Inventory there = services.catalog().inventory();
  given_ = there.given;
  renames_ = there.renames;
  given_said_ = given_ == 0 || (!there.entries.empty() && there.entries.back()->id == given_);
  made_ = std::move(there.entries);
  objects_.reserve(made_.size());
  for (const catalog::EntryPointer& entry : made_) objects_.push_back({entry->kind, entry->id});
}

Result<CopyStep> StoreCopy::next(CopyPiece& piece) {
  try {
    const auto step = go_on(piece);
    if (step && piece.starved()) return fail(Code::out_of_memory);
    return step;
  } catch (const std::bad_alloc&) {
    return fail(Code::out_of_memory);
  }
}

Result<CopyStep> StoreCopy::go_on(CopyPiece& piece) {
  add_made(piece);
  while (!piece.full()) {
    if (!copy_) {
      const auto begun = begin_next(piece);
      if (!begun) return std::unexpected(begun.error());
      if (!*begun) return CopyStep::done;
      continue;
    }
    const auto step = copy_->next(piece);
    if (!step) return step;
    if (*step == CopyStep::done) end_copy(piece);
    if (*step == CopyStep::wait) return piece.empty() ? CopyStep::wait : CopyStep::more;
  }
  return CopyStep::more;
}

// By ascending ids. Releases each object as soon as it is recorded, so that one dropped meanwhile
// can free its memory.
void StoreCopy::add_made(CopyPiece& piece) {
  for (; next_made_ < made_.size() && !piece.full(); ++next_made_) {
    const catalog::EntryPointer entry = std::move(made_[next_made_]);
    const catalog::CreatedObject object{entry->kind, entry->id, entry->name, entry->form,
                                        entry->durability};
    const auto room = piece.add(catalog::created_bytes(object));
    if (!room.empty()) catalog::write_created(room, object);
  }
  if (next_made_ < made_.size() || piece.full()) return;
  // These names include so many renames: earlier renames in the log have no effect.
  if (const std::uint32_t renames = std::exchange(renames_, 0); renames != 0) {
    const catalog::RenamedObject names{ObjectKind::map, 0, renames};
    const auto room = piece.add(catalog::renamed_bytes(names));
    if (!room.empty()) catalog::write_renamed(room, names);
  }
  if (given_said_) return;
  given_said_ = true;
  // The highest id may belong to a dropped object, and must not be reused. The kind does not
  // matter.
  add_dropped(piece, {ObjectKind::map, given_});
}

// The log has a record of the drop, perhaps far behind other records of the object, and a table
// accepts no rows that do not continue where its own end. So the copy itself records the drop, and
// those records are skipped. The record of the drop is below the copy's end: it was handed over
// before the object was found missing.
void StoreCopy::end_copy(CopyPiece& piece) {
  copy_.reset();
  if (!std::exchange(copies_object_, false)) return;
  const catalog::DroppedObject& object = objects_[next_object_ - 1];
  if (services_.catalog().find_any(object.id) != nullptr) return;
  if (!planted(Bug::copy_of_dropped_object_open)) add_dropped(piece, object);
}

Result<bool> StoreCopy::begin_next(CopyPiece& piece) {
  if (next_object_ < objects_.size()) {
    const catalog::EntryPointer entry = services_.catalog().find_any(objects_[next_object_++].id);
    copies_object_ = true;
    if (entry == nullptr) {
      end_copy(piece);
      return true;
    }
    if (entry->durability == Durability::none) {  // only its existence is recorded
      end_copy(piece);
      return true;
    }
    const KindRedo* const redo = redo_of(entry->kind, own_);
    if (redo == nullptr || redo->copy == nullptr) {
      return fail(Code::unsupported, static_cast<std::uint32_t>(entry->kind));
    }
    auto begun = redo->copy(services_, entry);
    if (!begun) return std::unexpected(begun.error());
    copy_ = std::move(*begun);
    return true;
  }
  const std::size_t kinds = all_kinds().size() + own_.size();
  while (next_kind_ < kinds) {
    const std::size_t i = next_kind_++;
    const Kind& kind = i < all_kinds().size() ? all_kinds()[i] : own_[i - all_kinds().size()];
    if (kind.redo == nullptr || kind.redo->copy_others == nullptr) continue;
    copy_ = kind.redo->copy_others(services_);
    return true;
  }
  return false;
}

}  // namespace espalier::offload
