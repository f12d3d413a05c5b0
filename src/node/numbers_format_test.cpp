// SPDX-License-Identifier: Apache-2.0
#include "node/numbers_format.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.hpp"
#include "node/node_number.hpp"
#include "node/testing/metrics_fixture.hpp"
#include "wire/node_numbers.hpp"

namespace espalier::node {
namespace {

/// Numbers with no field that is 0, and no two alike.
NodeNumbers full_numbers() {
  NodeNumbers numbers = some_numbers();
  std::uint64_t next = 100;
  for (const NodeNumber& number : node_numbers()) {
    if (number.read != nullptr) numbers.set(number.name, ++next, number.label_value);
  }
  numbers.uptime_ns = ++next;
  return numbers;
}

// The text has every number, so equal texts are equal numbers.
TEST(NumbersFormat, CarriesAllThatTheMetricsTell) {
  const NodeNumbers numbers = full_numbers();
  const auto read = decode(encode(numbers));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->uptime_ns, numbers.uptime_ns);
  ASSERT_EQ(read->offloads.size(), 1U);  // the other one had no requests
  EXPECT_EQ(read->offloads[0].id, wire::OffloadId::get);
  EXPECT_EQ(read->samples, numbers.samples);
  EXPECT_EQ(read->log_failure, numbers.log_failure);
  ASSERT_EQ(read->principals.size(), 1u);
  EXPECT_EQ(read->principals[0].name, "secret alice");
  EXPECT_EQ(read->principals[0].connections, 71u);
  EXPECT_EQ(read->principals[0].ring_bytes, 72u);
  EXPECT_EQ(read->principals[0].snapshots, 73u);
  NodeNumbers asked = numbers;
  asked.offloads.pop_back();
  asked.peers.clear();  // which are for the node's page alone, as what follows
  asked.sampled = {};
  EXPECT_EQ(metrics_text(*read), metrics_text(asked));
}

TEST(NumbersFormat, LiesAsItsPictureSays) {
  const NodeNumbers numbers = full_numbers();
  const std::string bytes = encode(numbers);
  wire::NodeNumbersHeader header{};
  ASSERT_GE(bytes.size(), sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  EXPECT_EQ(header.started_us, 1'700'000'000'250'000U);
  EXPECT_EQ(header.version_bytes, 5U);
  EXPECT_EQ(bytes.substr(sizeof header, 5), "1.2.3");
  EXPECT_EQ(header.failure_bytes, numbers.log_failure.size());
  EXPECT_EQ(bytes.substr(sizeof header + 5, header.failure_bytes), numbers.log_failure);
  std::string samples;
  for (const wire::Sample& sample : numbers.samples) wire::append(samples, sample);
  EXPECT_EQ(header.samples, numbers.samples.size());
  EXPECT_EQ(bytes.substr(sizeof header + 5 + header.failure_bytes, samples.size()), samples);
  EXPECT_EQ(header.offloads, 1U);
  EXPECT_EQ(header.workers, 2U);
  EXPECT_EQ(header.holders, 2U);
  EXPECT_EQ(header.principals, 1U);
  EXPECT_EQ(bytes.size(), sizeof header + 5 + numbers.log_failure.size() + samples.size() +
                              sizeof(wire::OffloadNumbers) + 2 * sizeof(wire::WorkerNumbers) +
                              2 * sizeof(wire::HolderEntry) + std::strlen("process 12default") +
                              std::strlen("session 3") + sizeof(wire::PrincipalEntry) +
                              std::strlen("secret alice"));
}

TEST(NumbersFormat, AnEmptyNodeHasAHeader) {
  const std::string bytes = encode(NodeNumbers{});
  EXPECT_EQ(bytes.size(), sizeof(wire::NodeNumbersHeader));
  EXPECT_TRUE(decode(bytes));
}

TEST(NumbersFormat, RefusesWhatIsTooShortOrTooLong) {
  const std::string bytes = encode(full_numbers());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto read = decode(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code, Code::corrupt);
  }
  EXPECT_FALSE(decode(bytes + '\0'));
}

TEST(NumbersFormat, BearsAnyBytes) {
  base::Random random(base::seed_from_environment(1));
  const std::string good = encode(full_numbers());
  std::size_t read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (int changes = 1 + static_cast<int>(random.below(4)); changes != 0; --changes) {
      // Mostly in the header, where the lengths are.
      const std::size_t at =
          random.below((random.below(2) == 0) ? bytes.size() : sizeof(wire::NodeNumbersHeader));
      bytes[at] = static_cast<char>(random.below(256));
    }
    if (const auto numbers = decode(bytes)) {
      ++read;
      EXPECT_FALSE(metrics_text(*numbers).empty());
    }
  }
  EXPECT_GT(read, 0U);
}

TEST(NumbersFormat, NamesOffloadsThatItDoesNotKnow) {
  NodeNumbers numbers;
  OffloadNumbers later;
  later.id = static_cast<wire::OffloadId>(200);
  later.requests = 1;
  numbers.offloads = {later};
  const auto read = decode(encode(numbers));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->offloads[0].name, "unknown");
}

}  // namespace
}  // namespace espalier::node
