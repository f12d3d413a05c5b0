// SPDX-License-Identifier: Apache-2.0
// The objects of one store, by name and by id: what a library embeds and what a node serves. Names
// and ids are of one space, whatever the kinds.
//
// An object is shared: a drop takes away its name and its id, and its memory goes back when the
// last who holds it lets go, so a thread may go on answering requests on an object that another one
// has dropped. Nobody waits for anybody, and no answer is about an object of the same name made
// later.
//
// Invariants
// 1. An id names one object for ever; it is not used again when that object is dropped.
// 2. An object found here is not marked as dropped at the moment of finding; it may be right after.
// 3. What is found as of a kind is of that kind: typed calls never return another's object.
// 4. A name leads to one object at each moment: an exchange of names is one step.
// 5. Ids are given in ascending order, and records of objects that were made have theirs in that
//    order.
//
// Thread: any. The lock is taken before all locks of objects and memory, and not held while the
// memory of an object is given back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catalog/object.hpp"
#include "espalier/error.hpp"
#include "wire/object.hpp"

namespace espalier::tree {
struct StoreCore;
}

namespace espalier::catalog {

struct CreatedObject;
struct DroppedObject;
struct RenamedObject;

/// An object with what the catalogue itself knows of it.
struct Entry {
  ObjectKind kind = ObjectKind::any;
  std::uint32_t id = 0;
  std::string name;
  std::shared_ptr<Object> object;
  /// The sequence of the record that it was made, or got this name; 0: it has none, or is durable
  /// with the store.
  std::uint64_t created = 0;
  /// What its record says that it was made of, in bytes of its kind.
  std::string form{};
  /// What it was made to promise; nothing: what its store promises.
  std::optional<Durability> durability{};
};
using EntryPointer = std::shared_ptr<const Entry>;

/// What there is at one moment.
struct Inventory {
  std::vector<EntryPointer> entries;  // by ascending ids
  std::uint32_t given = 0;            // the highest id that was given; 0: none was
  std::uint32_t renames = 0;          // how many renames they have their names by
};

class Catalog {
 public:
  static constexpr std::size_t kNameBytesMax = wire::kObjectNameBytesMax;
  [[nodiscard]] static bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= kNameBytesMax;
  }

  Catalog() = default;
  /// The objects of a store, which outlives them.
  explicit Catalog(tree::StoreCore& store) : store_(&store) {}
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  /// Where records go of what is made and dropped here, and of the effects of all objects
  /// (docs/design/records.md); null, as at first: none are made. The sink outlives the catalogue.
  /// Requires: no other thread uses the catalogue or an object of it.
  void record_to(RedoSink* sink);
  [[nodiscard]] RedoSink* redo() const { return redo_; }
  /// The sequence of the newest record of what was made or dropped; 0: there is none. What was
  /// found, or not found, before this is asked depends on no later one.
  [[nodiscard]] std::uint64_t recorded() const { return recorded_.load(); }

  /// In whose memory objects are made that lie in a store; null: none are.
  [[nodiscard]] tree::StoreCore* store() const { return store_; }

  // --- of one kind -------------------------------------------------------------------------------

  /// Makes an object: `make(id, name)` returns Result<std::shared_ptr<T>>. Others wait meanwhile.
  /// Throws std::bad_alloc, and then there is no such object.
  /// Errors: those of `make`; already_exists (detail: the ObjectKind of what has the name),
  /// invalid_argument (a name of none or too many bytes), unsupported (all ids are used up); those
  /// of the sink.
  /// `form`: what its record says that it is made of, in bytes of its kind. `durability`: as
  /// agreed_durability() of store/durable_store.hpp has it.
  template <ObjectOfKind T, class Make>
  Result<std::shared_ptr<T>> create(std::string_view name, std::string_view form, Make&& make,
                                    std::optional<Durability> durability = {}) {
    return typed<T>(add({T::kKind, name, form, durability}, untyped(make)));
  }
  template <ObjectOfKind T, class Make>
  Result<std::shared_ptr<T>> create(std::string_view name, Make&& make) {
    return create<T>(name, {}, make);
  }
  /// Makes an object again that a record tells of (catalog/object_redo.hpp), under its id: `make`
  /// as above, and its errors. Null: there is nothing to make, for it is there, or it was dropped:
  /// its id was given, and is not there. Errors: besides, corrupt (detail: a RedoFault).
  /// Requires: nothing is recorded; records of objects that were made come by ascending ids.
  template <ObjectOfKind T, class Make>
  Result<std::shared_ptr<T>> restore(const CreatedObject& created, Make&& make) {
    const auto restored = put_back(created, T::kKind, untyped(make));
    if (!restored) return std::unexpected(restored.error());
    if (*restored == nullptr) return nullptr;
    return std::static_pointer_cast<T>((*restored)->object);
  }
  /// Errors: not_found; wrong_kind (detail: the ObjectKind of what has the name).
  template <ObjectOfKind T>
  [[nodiscard]] Result<std::shared_ptr<T>> open(std::string_view name) const {
    return typed<T>(look_up(name, T::kKind));
  }
  /// The object with this id; null: there is none of this kind, or no longer.
  template <ObjectOfKind T>
  [[nodiscard]] std::shared_ptr<T> find(std::uint32_t id) const {
    const EntryPointer found = look_up(id);
    if (found == nullptr || found->kind != T::kKind) return nullptr;
    return std::static_pointer_cast<T>(found->object);
  }
  /// As drop() below.
  template <ObjectOfKind T>
  Result<std::shared_ptr<T>> drop(std::string_view name) {
    return typed<T>(drop(name, T::kKind));
  }

  // --- of any kind -------------------------------------------------------------------------------

  using Make = std::function<Result<std::shared_ptr<Object>>(std::uint32_t, std::string)>;
  /// As create() above, of a kind that is known when it runs. Requires: its own number, not `any`.
  Result<EntryPointer> create_any(ObjectKind kind, std::string_view name, std::string_view form,
                                  const Make& make) {
    return add({kind, name, form, {}}, make);
  }

  /// Takes an object away from all who look for it, and marks it as dropped for those who have it.
  /// Returns it, so that the caller can clear what it keeps for it; its memory goes back when the
  /// last holder lets go. `id`: of the one that is meant; 0: whichever has the name.
  /// Errors: not_found; wrong_kind (detail: its kind, which is not `kind`); those of the sink.
  Result<EntryPointer> drop(std::string_view name, ObjectKind kind = ObjectKind::any,
                            std::uint32_t id = 0);
  /// The same of the object that a record names; null: there is none, or no longer. From now on its
  /// id is one that was given. Errors: corrupt (detail: a RedoFault: the id is that of another kind
  /// of object). Requires: nothing is recorded.
  Result<EntryPointer> drop_again(const DroppedObject& dropped);

  /// Gives an object another name, in one step: who looks for that name finds what had it before,
  /// or this one. Its id stays. Returns what was dropped, as drop(), or null.
  /// Errors: not_found (nothing has the name; detail 1: there is none to exchange names with),
  /// wrong_kind (detail: the ObjectKind of what has one of the names, which is not `kind`, or not
  /// that of the other), already_exists (detail: likewise), invalid_argument (no name, or its own),
  /// unsupported (its kind keeps its names, detail: which; or all numbers of renames are used up);
  /// those of the sink. Throws std::bad_alloc, and then nothing was changed.
  Result<EntryPointer> rename(std::string_view name, std::string_view to, ObjectKind kind,
                              Displaced displaced);
  /// The same as a record tells of it; one that is no news changes nothing.
  /// Errors: corrupt (detail: a RedoFault). Requires: nothing is recorded.
  Result<EntryPointer> rename_again(const RenamedObject& renamed);
  /// How often objects were renamed. What was looked up by its name after this was asked has that
  /// name by one of these renames, or has it no more by a later one.
  [[nodiscard]] std::uint32_t renames() const { return renames_.load(std::memory_order_acquire); }

  /// The object with this id; null: there is none, or no longer.
  [[nodiscard]] EntryPointer find_any(std::uint32_t id) const { return look_up(id); }

  /// The object with this name; null: there is none.
  [[nodiscard]] EntryPointer find_any(std::string_view name) const {
    return look_up(name, ObjectKind::any).value_or(nullptr);
  }

  /// Those of a kind, by ascending names.
  [[nodiscard]] std::vector<EntryPointer> list(ObjectKind kind = ObjectKind::any) const;
  [[nodiscard]] std::vector<std::string> names(ObjectKind kind = ObjectKind::any) const;
  /// All of them, and the ids that were given: what records that were handed over by now have come
  /// to. Throws std::bad_alloc.
  [[nodiscard]] Inventory inventory() const;

 private:
  template <class MakeTyped>
  static Make untyped(MakeTyped& make) {
    return [&make](std::uint32_t id, std::string own_name) {
      return Result<std::shared_ptr<Object>>(make(id, std::move(own_name)));
    };
  }
  struct NewObject {
    ObjectKind kind;
    std::string_view name;
    std::string_view form;
    std::optional<Durability> durability;
  };
  Result<EntryPointer> add(const NewObject& object, const Make& make);
  Result<EntryPointer> put_back(const CreatedObject& created, ObjectKind kind, const Make& make);
  // Of these: requires the lock.
  Result<std::shared_ptr<Entry>> make_entry(const CreatedObject& created, const Make& make);
  EntryPointer take_away(EntryPointer entry);
  struct Rename;
  void carry_out(Rename& rename, std::uint64_t sequence) noexcept;
  [[nodiscard]] bool was_given(std::uint32_t id) const { return next_id_ == 0 || id < next_id_; }
  void set_given(std::uint32_t id) {
    if (!was_given(id)) next_id_ = id + 1;
  }
  [[nodiscard]] Result<EntryPointer> look_up(std::string_view name, ObjectKind kind) const;
  [[nodiscard]] EntryPointer look_up(std::uint32_t id) const;
  template <class T>
  static Result<std::shared_ptr<T>> typed(const Result<EntryPointer>& found) {
    if (!found) return std::unexpected(found.error());
    return std::static_pointer_cast<T>((*found)->object);
  }

  tree::StoreCore* const store_ = nullptr;
  RedoSink* redo_ = nullptr;
  std::atomic<std::uint64_t> recorded_ = 0;
  std::atomic<std::uint32_t> renames_ = 0;  // changes under the lock
  mutable std::mutex mutex_;                // guards all below
  std::map<std::string, EntryPointer, std::less<>> by_name_;
  std::unordered_map<std::uint32_t, EntryPointer> by_id_;
  std::uint32_t next_id_ = 1;  // 0 once all are used up
};

}  // namespace espalier::catalog
