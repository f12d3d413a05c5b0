// SPDX-License-Identifier: Apache-2.0
// A store after an accepted loss (node/data_folder.hpp), with a program's own kinds, too.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "base/temporary_folder.hpp"
#include "engine/registry.hpp"
#include "engine/services.hpp"
#include "log/log.hpp"
#include "log/posix_folder.hpp"
#include "log/store_file.hpp"
#include "log/testing/small_log.hpp"
#include "memory/region.hpp"
#include "node/data_folder.hpp"
#include "store/store_core.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kLossStoreBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kLossSegmentBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMessageBytes = std::uint64_t{1} << 20;
constexpr std::string_view kDamagedText = "this record is damaged below";

int after_losses = 0;
bool refuses = false;

Result<void> count_loss(offload::Services&) {
  ++after_losses;
  if (refuses) return fail(Code::busy);
  return {};
}

const offload::KindRedo& counting_redo() {
  static const offload::KindRedo redo = [] {
    offload::KindRedo made;
    made.others_after_loss = count_loss;
    return made;
  }();
  return redo;
}

/// A store with a data folder, as a node of a program has it.
class ProgramStore {
 public:
  explicit ProgramStore(const node::Config::Data& data)
      : core_(*memory::Region::reserve({.bytes_max = kLossStoreBytes}), 16) {
    kind_.name = "counting";
    kind_.redo = &counting_redo();
    services_ = std::make_unique<offload::Services>(core_, kMessageBytes, std::span(&kind_, 1),
                                                    offload::HelperOptions{.threads = 1});
    node::DataFolder::Terms terms{
        .data = data, .own_kinds = {&kind_, 1}, .segment_bytes = kLossSegmentBytes, .threads = 1};
    auto opened = node::DataFolder::open(terms, *services_);
    if (opened) {
      folder_ = std::move(*opened);
    } else {
      refusal = std::move(opened.error());
    }
  }
  std::string refusal;

 private:
  offload::Kind kind_;
  std::unique_ptr<node::DataFolder> folder_;  // destroyed after its users
  tree::StoreCore core_;
  std::unique_ptr<offload::Services> services_;
};

/// Two records more, of which the first is damaged then. Returns its sequence.
std::uint64_t damage(const std::string& dir) {
  log::PosixFolder whole(dir);
  log::PosixFolder folder(dir + "/log");
  log::LogOptions options;
  options.recovery.node = *log::open_store_file(whole, 1);
  options.writer.segment_bytes = kLossSegmentBytes;
  options.threads = false;
  const auto opened =
      log::Log::open(folder, options,
                     [](std::uint64_t, std::span<const std::byte>) -> Result<void> { return {}; });
  EXPECT_TRUE(opened);
  log::LogWriter& writer = (*opened)->writer();
  const std::uint64_t first = log::append(writer, kDamagedText);
  EXPECT_TRUE(writer.flush());
  log::append(writer, "behind it");
  EXPECT_TRUE(writer.flush());
  EXPECT_TRUE((*opened)->close());
  for (const auto& file : std::filesystem::directory_iterator(dir + "/log")) {
    std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(bytes)), {});
    const std::size_t at = all.find(kDamagedText);
    if (at == std::string::npos) continue;
    bytes.clear();
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put('T');
    return first;
  }
  ADD_FAILURE() << "no file has it";
  return 0;
}

TEST(DataFolderLoss, KindsOfAProgramGoOnAfterIt) {
  const base::TemporaryFolder folder;
  node::Config::Data data;
  data.dir = (folder / "data").string();
  data.durability = Durability::sync;
  after_losses = 0;
  EXPECT_EQ(ProgramStore(data).refusal, "");
  const std::uint64_t damaged = damage(data.dir);
  EXPECT_NE(ProgramStore(data).refusal, "");
  EXPECT_EQ(after_losses, 0);
  data.accept_loss_from = damaged;
  refuses = true;
  const std::string refusal = ProgramStore(data).refusal;
  EXPECT_NE(refusal.find("raise data.log_bytes_max"), std::string::npos) << refusal;
  refuses = false;
  data.accept_loss_from.reset();  // the loss is accepted, but not all objects have continued
  EXPECT_EQ(ProgramStore(data).refusal, "");
  EXPECT_EQ(after_losses, 2);
}

}  // namespace
}  // namespace espalier::test
