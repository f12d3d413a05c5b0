// SPDX-License-Identifier: Apache-2.0
// Two endpoints of `roce` over two ports that can reach each other, however they do: for tests over
// real networks.
//
// Thread: one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "fabric/roce/endpoint.hpp"
#include "fabric/testing/fabric_fixture.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::roce {

class PortLink final : public FabricLink {
 public:
  /// `far` listens.
  PortLink(std::unique_ptr<PacketPort> near, std::unique_ptr<PacketPort> far, std::uint64_t seed)
      : far_at_(to_text(far->address())),
        near_(make(std::move(near), seed)),
        far_(make(std::move(far), seed + 2)) {
    EXPECT_TRUE(far_.listen("7"));
  }
  RoceEndpoint& near() override { return near_; }
  RoceEndpoint& far() override { return far_; }
  std::string address() override { return far_at_ + "/7"; }
  std::string nobody() override { return far_at_ + "/8"; }
  void turn() override {
    near_.progress();
    far_.progress();
  }
  OfferedMemory memory(std::uint64_t bytes) override {
    memory_ = *memory::SharedMemory::create("fabric-test", bytes);
    return {memory_.at(0), bytes, memory_.descriptor(), 0};
  }

 private:
  static RoceEndpoint make(std::unique_ptr<PacketPort> port, std::uint64_t seed) {
    return {std::move(port), *RegionTable::create(seed), NumberSource::of_seed(seed + 1)};
  }

  std::string far_at_;
  memory::SharedMemory memory_;
  RoceEndpoint near_;
  RoceEndpoint far_;
};

}  // namespace espalier::fabric::roce
