// SPDX-License-Identifier: Apache-2.0
// For tests: objects of kinds that hold nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/catalog.hpp"

namespace espalier::catalog {

/// Counts those of it that live.
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
  [[nodiscard]] std::string description() const override { return "made of nothing"; }
  [[nodiscard]] ObjectNumbers numbers() const override { return {id, name.size()}; }

  const std::uint32_t id;
  const std::string name;
  std::atomic<int> times_dropped{0};

 private:
  std::atomic<int>& living_;
};

using SomeMap = SomeObject<ObjectKind::map>;
using SomeTable = SomeObject<ObjectKind::table>;
/// Of a later version: the catalogue knows no list of kinds.
using SomeLater = SomeObject<static_cast<ObjectKind>(200)>;

/// A catalogue, and how many of its objects live.
struct SomeCatalog {
  template <class T>
  Result<std::shared_ptr<T>> create(std::string_view name) {
    return catalog.create<T>(
        name, [this](std::uint32_t id, std::string own) -> Result<std::shared_ptr<T>> {
          return std::make_shared<T>(id, std::move(own), living);
        });
  }

  std::atomic<int> living{0};
  Catalog catalog;
};

}  // namespace espalier::catalog
