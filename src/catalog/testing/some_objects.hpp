// SPDX-License-Identifier: Apache-2.0
// For tests: objects of fake kinds that hold nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.hpp"
#include "catalog/samples.hpp"

namespace espalier::catalog {

using ObjectNames = std::vector<std::string>;

/// Text that must be escaped in terminals, JSON and metrics.
inline constexpr const char* kOddText = "odd\x1b\"\\\n\xff";

/// Counts its living instances.
template <ObjectKind kOfKind>
class SomeObject final : public Object {
 public:
  static constexpr ObjectKind kKind = kOfKind;

  SomeObject(std::uint32_t id_in, std::string name_in, std::atomic<int>& living)
      : id(id_in), name(std::move(name_in)), living_(living) {
    ++living_;
  }
  ~SomeObject() override { --living_; }

  void set_dropped() override { ++times_dropped; }
  [[nodiscard]] bool may_be_renamed() const override { return kOfKind == ObjectKind::map; }
  void set_renamed(std::string& now, std::uint32_t number) noexcept override {
    renamed.swap(now);
    rename = number;
  }
  [[nodiscard]] std::string description() const override { return "made of nothing"; }
  [[nodiscard]] ObjectNumbers numbers() const override { return {id, name.size()}; }
  void add_samples(SampleList& to) const override {
    to.gauge({"items", "", "Items."}, 3);
    to.gauge({"queued_bytes", "bytes", "Bytes that wait."}, 3 << 10, {{"queue", "in"}});
    to.gauge({"queued_bytes", "bytes", "Bytes that wait."}, 5, {{"queue", kOddText}});
    to.counter({"lookups", "", "Times that it was asked."}, lookups);
  }

  const std::uint32_t id;
  const std::string name;
  std::string renamed;  // its last new name; guarded by the catalogue's lock
  std::atomic<std::uint32_t> rename{0};
  std::atomic<int> times_dropped{0};
  std::atomic<std::uint64_t> lookups{0};

 private:
  std::atomic<int>& living_;
};

using SomeMap = SomeObject<ObjectKind::map>;
using SomeTable = SomeObject<ObjectKind::table>;
/// A kind of a later version: the catalogue has no list of kinds.
using SomeLater = SomeObject<static_cast<ObjectKind>(200)>;

/// Makes one in any catalogue, such as a node's. `living` outlives it.
template <class T>
Result<std::shared_ptr<T>> create_some(Catalog& catalog, std::string_view name,
                                       std::atomic<int>& living) {
  return catalog.create<T>(
      name, [&living](std::uint32_t id, std::string own) -> Result<std::shared_ptr<T>> {
        return std::make_shared<T>(id, std::move(own), living);
      });
}

/// A catalogue, and the count of its living objects.
struct SomeCatalog {
  template <class T>
  Result<std::shared_ptr<T>> create(std::string_view name) {
    return create_some<T>(catalog, name, living);
  }

  std::atomic<int> living{0};
  Catalog catalog;
};

}  // namespace espalier::catalog
