// SPDX-License-Identifier: Apache-2.0
#include "chain/record_buffer.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "log/testing/faulty_folder.hpp"
#include "log/testing/small_log.hpp"

namespace espalier::chain {
namespace {

std::string record_of(std::uint64_t number) { return "record " + std::to_string(number); }

/// A log whose written records the buffer keeps, after two that recovery has read.
class RecordBufferTest : public ::testing::Test {
 protected:
  RecordBufferTest() {
    for (std::uint64_t i = 0; i <= 2; ++i) {
      const std::string text = record_of(i);
      buffer_.add_recovered(i, std::as_bytes(std::span(text)));
    }
    log::Recovered recovered;
    recovered.next_sequence = 3;
    const auto options = log::small_options();
    auto writer = log::LogWriter::begin(folder_, log::kSomeNode, options.writer, recovered);
    EXPECT_TRUE(writer);
    writer_ = std::move(*writer);
    buffer_.open(*writer_, 2, [this] { ++woken_; });
  }
  ~RecordBufferTest() override { buffer_.close(); }
  /// The records of a message from one to another.
  std::vector<std::string> packed(std::uint64_t first, std::uint64_t last, std::size_t bytes) {
    std::string message;
    const std::uint64_t packed = buffer_.pack(first, last, bytes, message);
    const auto records = unpack_records(message, packed + 1 - first);
    EXPECT_TRUE(records);
    return {records->begin(), records->end()};
  }

  log::FaultyFolder folder_{1};
  RecordBuffer buffer_;
  std::unique_ptr<log::LogWriter> writer_;
  int woken_ = 0;
};

TEST_F(RecordBufferTest, HasWhatRecoveryReadAndWhatIsWritten) {
  EXPECT_EQ(buffer_.first(), 1u);
  EXPECT_EQ(buffer_.written(), 2u);
  for (std::uint64_t i = 3; i <= 5; ++i) log::append(*writer_, record_of(i));
  EXPECT_EQ(buffer_.written(), 2u);  // they are in memory alone
  ASSERT_TRUE(writer_->flush());
  EXPECT_EQ(buffer_.written(), 5u);
  EXPECT_EQ(woken_, 1);
  const std::vector<std::string> all = {record_of(1), record_of(2), record_of(3), record_of(4),
                                        record_of(5)};
  EXPECT_EQ(packed(1, 5, 1000), all);
  EXPECT_EQ(packed(2, 3, 1000), (std::vector<std::string>{record_of(2), record_of(3)}));
  EXPECT_EQ(packed(4, 5, 1), std::vector<std::string>{record_of(4)});
  EXPECT_EQ(packed(5, 5, 1), std::vector<std::string>{record_of(5)});
  EXPECT_EQ(packed(4, 5, 1), std::vector<std::string>{record_of(4)});  // sent again
}

TEST_F(RecordBufferTest, LetsGoOfWhatTheTailHas) {
  for (std::uint64_t i = 3; i <= 5; ++i) log::append(*writer_, record_of(i));
  ASSERT_TRUE(writer_->flush());
  EXPECT_NE(writer_->room().held_bytes(), 0u);
  buffer_.release_to(4);
  EXPECT_EQ(buffer_.first(), 5u);
  EXPECT_TRUE(packed(4, 5, 1000).empty());
  EXPECT_EQ(packed(5, 5, 1000), std::vector<std::string>{record_of(5)});
  buffer_.release_to(5);
  EXPECT_EQ(buffer_.first(), 6u);
  EXPECT_EQ(writer_->room().held_bytes(), 0u);
  buffer_.close();
  log::append(*writer_, record_of(6));
  ASSERT_TRUE(writer_->flush());
  EXPECT_EQ(writer_->room().held_bytes(), 0u);
}

TEST_F(RecordBufferTest, NothingIsAcknowledgedBeforeItIsElsewhere) {
  writer_->acknowledgements().await_replicas();
  log::append(*writer_, record_of(3));
  ASSERT_TRUE(writer_->flush());
  EXPECT_EQ(writer_->durable(), 2u);
  writer_->acknowledgements().replicate(3);
  EXPECT_EQ(writer_->durable(), 3u);
  writer_->acknowledgements().replicate(9);  // reported before it is on this disk
  log::append(*writer_, record_of(4));
  EXPECT_EQ(writer_->durable(), 3u);
  ASSERT_TRUE(writer_->flush());
  EXPECT_EQ(writer_->durable(), 4u);
}

TEST(UnpackRecords, AnyOtherBytesAreRefused) {
  std::string message;
  const std::string text = "some";
  pack_record(std::as_bytes(std::span(text)), message);
  pack_record({}, message);
  ASSERT_TRUE(unpack_records(message, 2));
  EXPECT_FALSE(unpack_records(message, 1));
  EXPECT_FALSE(unpack_records(message, 3));
  for (std::size_t i = 1; i < message.size(); ++i) {
    EXPECT_FALSE(unpack_records(std::string_view(message).substr(0, i), 2));
  }
}

}  // namespace
}  // namespace espalier::chain
