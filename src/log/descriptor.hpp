// SPDX-License-Identifier: Apache-2.0
// A file's descriptor, closed in the end. Thread: one at a time.
#pragma once

#include <unistd.h>

#include <utility>

namespace espalier::log {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

}  // namespace espalier::log
