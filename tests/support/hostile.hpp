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

/// A request of some offload, valid or invalid, with a correct length.
std::string random_request(Random& random);
/// Writes so many lines of random bytes, as far as they are read, and sometimes rings and reads.
void write_garbage(RawClient& client, Random& random, int lines);
/// Sends a packet with so many arbitrary descriptors.
bool send_with_descriptors(int socket, std::string_view packet, int count);
/// Waits until this process has so many descriptors.
void expect_descriptors(std::size_t count);

/// Runs a client that does a number of random things, decided by the seed, and then kills itself.
/// Does not return.
[[noreturn]] void live_and_die(const std::string& socket, std::uint64_t seed);
/// The same over a fabric, by all means of its verbs (hostile_peer.hpp).
[[noreturn]] void live_and_die_on_fabric(const std::string& address, std::uint64_t seed);

/// A process with one thread, which forks clients. Make it before there are other threads.
class Nursery {
 public:
  explicit Nursery(const std::string& socket);
  ~Nursery();
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  /// Runs a client to its end. Returns whether it died as intended.
  bool run_to_its_death(std::uint64_t seed) {
    begin(seed);
    return wait_for_all() == 1;
  }
  void begin(std::uint64_t seed);
  /// Waits for all of them. Returns how many died as intended.
  int wait_for_all();

 private:
  [[noreturn]] void work(const std::string& socket);

  pid_t process_ = -1;
  memory::Descriptor line_;
};

}  // namespace espalier::test
