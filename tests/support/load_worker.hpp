// SPDX-License-Identifier: Apache-2.0
// A correct client that checks everything: it does random operations of every kind on keys of its
// own through a connection, and compares each answer with what it wrote.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "espalier/map.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

/// Erases all items of [low, high), many at a time. Returns what went wrong. Uses single erases,
/// since batches of erases keep emptied leaves.
[[nodiscard]] std::string erase_range(const Map& map, std::string_view low, std::string_view high);

class LoadWorker {
 public:
  /// Connects, and erases what others of its family left, whose names share a prefix. Its own name
  /// must be new: the last requests of a killed client may still be executed after its successor
  /// has connected. Throws if it cannot.
  LoadWorker(const std::string& address, const std::string& family, const std::string& name,
             std::uint64_t seed);
  /// Does so many operations. `go_on` is called after every hundredth. Throws at a wrong answer.
  void work(std::uint64_t operations, const std::function<void()>& go_on);

 private:
  using Model = std::map<std::string, std::string>;

  void erase_what_was_left(const std::string& family);
  void step();
  void write();
  void read();
  void write_batch();
  void use_snapshot();
  void use_pipeline();
  void use_counters();
  void use_a_map_of_its_own();
  void expect(bool good, const char* what) const;
  template <class T>
  T good(Result<T> result, const char* what) const;
  template <class Reader>
  void compare(const Reader& reader, const Model& model, const char* what) const;
  std::string key();
  std::string value();

  const std::string name_;
  Random random_;
  Store store_;
  Map map_;
  Model model_;
  std::uint64_t newest_number_ = 0;
  std::uint64_t sum_ = 0;
  Model held_;
  std::optional<Snapshot> snapshot_;  // shows held_; destroyed before the store
};

}  // namespace espalier::test
