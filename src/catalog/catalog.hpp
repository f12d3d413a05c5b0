// SPDX-License-Identifier: Apache-2.0
// The catalogue of one store: its objects by name and by id. Names and ids are unique over all
// kinds.
//
// Objects are shared: a drop removes the name and the id, and frees the memory when the last holder
// lets go. So a thread may go on answering requests on an object that another thread has dropped:
// neither waits for the other, and no answer is about an object made later under the same name.
//
// Invariants
// 1. An id names one object for ever; it is not reused when that object is dropped.
// 2. An object found here was not marked as dropped when it was found; it may be right after.
// 3. An object found by kind has that kind: typed calls never return another kind's object.
// 4. A name leads to at most one object at each moment: an exchange of names is one step.
// 5. Ids ascend in the order in which they are given, and so do those of `created` records.
//
// Thread: any. The catalogue's lock is taken before all locks of objects and memory, and not held
// while an object's memory is freed.
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

/// An object and what the catalogue knows of it.
struct Entry {
  ObjectKind kind = ObjectKind::any;
  std::uint32_t id = 0;
  std::string name;
  std::shared_ptr<Object> object;
  /// The sequence of the record that created it or gave it this name; 0: there is none, or it is
  /// durable with the store.
  std::uint64_t created = 0;
  /// What its `created` record says that it is made of, in bytes of its kind.
  std::string form{};
  /// The durability it was made with; nothing: that of its store.
  std::optional<Durability> durability{};
};
using EntryPointer = std::shared_ptr<const Entry>;

/// The catalogue's content at one moment.
struct Inventory {
  std::vector<EntryPointer> entries;  // by ascending ids
  std::uint32_t given = 0;            // the highest id given; 0: none
  std::uint32_t renames = 0;          // how many renames led to these names
};

class Catalog {
 public:
  static constexpr std::size_t kNameBytesMax = wire::kObjectNameBytesMax;
  [[nodiscard]] static bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= kNameBytesMax;
  }

  Catalog() = default;
  /// The objects of a store, which must outlive the catalogue.
  explicit Catalog(tree::StoreCore& store) : store_(&store) {}
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  /// Sets the sink for records of creations, drops and renames, and of the effects of all objects
  /// (docs/design/records.md); null, the initial state: no records. The sink must outlive the
  /// catalogue. Requires: no other thread uses the catalogue or an object of it.
  void record_to(RedoSink* sink);
  [[nodiscard]] RedoSink* redo() const { return redo_; }
  /// The sequence of the newest record of a creation, drop or rename; 0: there is none. A look-up
  /// that was made before this call depends on no later record.
  [[nodiscard]] std::uint64_t recorded() const { return recorded_.load(); }

  /// The store whose memory objects are made in; null: none.
  [[nodiscard]] tree::StoreCore* store() const { return store_; }

  // --- of one kind -------------------------------------------------------------------------------

  /// Makes an object: `make(id, name)` returns Result<std::shared_ptr<T>>. Holds the lock
  /// meanwhile. If it throws std::bad_alloc, no object was made.
  /// Errors: those of `make`; already_exists (detail: the ObjectKind of the name's object),
  /// invalid_argument (an empty or too long name), unsupported (all ids are used up); those of the
  /// sink.
  /// `form`: what its record says that it is made of, in bytes of its kind. `durability`: as agreed
  /// by agreed_durability() (store/durable_store.hpp).
  template <ObjectOfKind T, class Make>
  Result<std::shared_ptr<T>> create(std::string_view name, std::string_view form, Make&& make,
                                    std::optional<Durability> durability = {}) {
    return typed<T>(add({T::kKind, name, form, durability}, untyped(make)));
  }
  template <ObjectOfKind T, class Make>
  Result<std::shared_ptr<T>> create(std::string_view name, Make&& make) {
    return create<T>(name, {}, make);
  }
  /// Makes the object of a record (catalog/object_redo.hpp) again, under its id; `make` and errors
  /// as above. Null: nothing to make, since the object is there, or was dropped: its id was given,
  /// and is not there. Errors: besides, corrupt (detail: a RedoFault). Requires: no sink; `created`
  /// records are applied by ascending ids.
  template <ObjectOfKind T, class Make>
  Result<std::shared_ptr<T>> restore(const CreatedObject& created, Make&& make) {
    const auto restored = put_back(created, T::kKind, untyped(make));
    if (!restored) return std::unexpected(restored.error());
    if (*restored == nullptr) return nullptr;
    return std::static_pointer_cast<T>((*restored)->object);
  }
  /// Errors: not_found; wrong_kind (detail: the ObjectKind of the name's object).
  template <ObjectOfKind T>
  [[nodiscard]] Result<std::shared_ptr<T>> open(std::string_view name) const {
    return typed<T>(look_up(name, T::kKind));
  }
  /// The object with this id; null: none of this kind has it, or it was dropped.
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
  /// As create() above, for a kind known at run time. Requires: a kind other than `any`.
  Result<EntryPointer> create_any(ObjectKind kind, std::string_view name, std::string_view form,
                                  const Make& make) {
    return add({kind, name, form, {}}, make);
  }

  /// Removes an object from the catalogue and marks it as dropped for its holders. Returns it, so
  /// that the caller can clear its own state of it; its memory is freed when the last holder lets
  /// go. `id`: drop only the object with this id; 0: any object of that name.
  /// Errors: not_found; wrong_kind (detail: its kind, which is not `kind`); those of the sink.
  Result<EntryPointer> drop(std::string_view name, ObjectKind kind = ObjectKind::any,
                            std::uint32_t id = 0);
  /// The same for the object that a record names; null: there is none, or no longer. Its id counts
  /// as given from now on. Errors: corrupt (detail: a RedoFault: the id belongs to another kind of
  /// object). Requires: no sink.
  Result<EntryPointer> drop_again(const DroppedObject& dropped);

  /// Renames an object atomically: a look-up of `to` finds either its previous object or this one.
  /// The id stays. Returns the dropped object, as drop(), or null.
  /// Errors: not_found (nothing has the name; detail 1: there is no object to exchange names with),
  /// wrong_kind (detail: the ObjectKind of an object with one of the names, which is not `kind`, or
  /// not that of the other), already_exists (detail: likewise), invalid_argument (no name, or its
  /// own), unsupported (objects of this kind keep their names, detail: the kind; or all numbers of
  /// renames are used up); those of the sink. Throws std::bad_alloc, and then nothing was changed.
  Result<EntryPointer> rename(std::string_view name, std::string_view to, ObjectKind kind,
                              Displaced displaced);
  /// Applies the record of a rename; does nothing if it is applied already. Errors: corrupt
  /// (detail: a RedoFault). Requires: no sink.
  Result<EntryPointer> rename_again(const RenamedObject& renamed);
  /// How many renames there were. An object looked up by name after this call has its name by one
  /// of these renames, or has lost it by a later one.
  [[nodiscard]] std::uint32_t renames() const { return renames_.load(std::memory_order_acquire); }

  /// The object with this id; null: there is none, or no longer.
  [[nodiscard]] EntryPointer find_any(std::uint32_t id) const { return look_up(id); }

  /// The object with this name; null: there is none.
  [[nodiscard]] EntryPointer find_any(std::string_view name) const {
    return look_up(name, ObjectKind::any).value_or(nullptr);
  }

  /// The objects of a kind, by ascending names.
  [[nodiscard]] std::vector<EntryPointer> list(ObjectKind kind = ObjectKind::any) const;
  [[nodiscard]] std::vector<std::string> names(ObjectKind kind = ObjectKind::any) const;
  /// All objects, and the ids given: the state that all records handed over by now have led to.
  /// Throws std::bad_alloc.
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
  // These require the lock.
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
