// SPDX-License-Identifier: Apache-2.0
// An object of a kind that a program defines, as the catalogue sees it, and the memory that all
// objects of such a kind share.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/object.hpp"
#include "espalier/offload.hpp"

namespace espalier::program {

/// The memory limit of all objects of a kind. Invariant: used_ <= limit_.
class KindMemory {
 public:
  explicit KindMemory(std::uint64_t bytes_max) : limit_(bytes_max) {}
  /// Returns false if there is not so much left.
  [[nodiscard]] bool take(std::uint64_t bytes) noexcept;
  void give(std::uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

/// Memory of one object, out of its kind's share. Memory that the object has not freed when it is
/// destroyed returns to the kind's share, but is leaked by the process.
class ObjectMemory final : public std::pmr::memory_resource {
 public:
  explicit ObjectMemory(std::shared_ptr<KindMemory> kind) : kind_(std::move(kind)) {}
  ~ObjectMemory() override { kind_->give(used()); }
  ObjectMemory(const ObjectMemory&) = delete;
  ObjectMemory& operator=(const ObjectMemory&) = delete;

  /// Charges memory that is not allocated here. Returns false if there is not so much left.
  [[nodiscard]] bool charge(std::uint64_t bytes) noexcept;
  [[nodiscard]] std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* at, std::size_t bytes, std::size_t alignment) override;
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  const std::shared_ptr<KindMemory> kind_;
  std::atomic<std::uint64_t> used_{0};
};

class ProgramObject final : public catalog::Object {
 public:
  /// `memory`: that of `own`.
  ProgramObject(std::uint32_t id, std::string_view kind_name, std::string_view form,
                std::unique_ptr<ObjectMemory> memory, std::unique_ptr<OwnObject> own)
      : id_(id),
        kind_name_(kind_name),
        form_(form),
        memory_(std::move(memory)),
        own_(std::move(own)) {}

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] OwnObject& own() const { return *own_; }

  void set_dropped() override {}  // each request looks it up
  [[nodiscard]] std::string_view kind_name() const override { return kind_name_; }
  [[nodiscard]] std::string description() const override { return form_; }
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;

 private:
  const std::uint32_t id_;
  const std::string kind_name_;
  const std::string form_;
  const std::unique_ptr<ObjectMemory> memory_;
  const std::unique_ptr<OwnObject> own_;  // destroyed before its memory
};

}  // namespace espalier::program
