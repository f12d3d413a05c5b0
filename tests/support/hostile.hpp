// SPDX-License-Identifier: Apache-2.0
// The behaviour of hostile clients.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/support/raw_client.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

/// A request of some offload, or of none, that may or may not make sense; its length is right.
std::string random_request(Random& random);
/// Writes so many lines of random bytes, as far as they are read, and rings and reads now and then.
void write_garbage(RawClient& client, Random& random, int lines);
/// Sends a packet with so many descriptors of nothing in particular.
bool send_with_descriptors(int socket, std::string_view packet, int count);
/// Waits until this process has so many descriptors.
void expect_descriptors(std::size_t count);

/// Lives as a client that does a number of random things, which the seed decides, and then kills
/// itself. Does not return.
[[noreturn]] void live_and_die(const std::string& socket, std::uint64_t seed);
/// The same over a fabric, by all that its verbs allow (client/hostile_peer.hpp).
[[noreturn]] void live_and_die_on_fabric(const std::string& address, std::uint64_t seed);

/// A process with one thread, which forks clients. Make it before there are threads.
class Nursery {
 public:
  explicit Nursery(const std::string& socket);
  ~Nursery();
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  /// Lets a client live and die. Returns whether it died as it was meant to.
  bool run_to_its_death(std::uint64_t seed) {
    begin(seed);
    return wait_for_all() == 1;
  }
  void begin(std::uint64_t seed);
  /// Waits for all that began. Returns how many died as they were meant to.
  int wait_for_all();

 private:
  [[noreturn]] void work(const std::string& socket);

  pid_t process_ = -1;
  memory::Descriptor line_;
};

}  // namespace espalier::test
